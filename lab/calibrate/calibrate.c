/* SPDX-License-Identifier: MIT */
/* lab-calibrate: print what the kernel's work costs on this machine, as CSV. See calibrate.h. */
#include "calibrate.h"

#include <stdio.h>
#include <string.h>

static void measure(const struct calibration *c)
{
	calibrate_tasks(c);
	calibrate_clearing(c);
	calibrate_touching(c);
	calibrate_moving(c);
	calibrate_hints(c);
}

static void measure_all(struct calibration *c)
{
	struct busy busy;

	calibrate_cold(c);
	calibrate_wandering(c);
	measure(c);
	machine_make_busy(&busy, &c->machine);
	c->busy = true;
	measure(c);
	machine_end_busy(&busy);
}

int main(int argc, char **argv)
{
	struct calibration c = {0};
	const bool wandering = argc == 2 && !strcmp(argv[1], "--wander");

	if (argc == 2 && !strcmp(argv[1], "--nothing"))
		return 0; /* tasks.c starts processes */
	if (argc > 1 && !wandering) {
		fprintf(stderr, "usage: lab-calibrate [--wander]\n");
		return 2;
	}
	c.machine = machine_look();
	printf("name,case,n,p10_us,p50_us,p90_us,mean_us\n# cpus=%u home=%d away=%d\n",
		c.machine.nr_cpus, c.machine.home, c.machine.away);
	if (wandering)
		calibrate_wandering(&c);
	else
		measure_all(&c);
	return fflush(stdout) ? 1 : 0;
}
