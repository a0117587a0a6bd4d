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

int main(int argc, char **argv)
{
	struct calibration c = {0};
	struct busy busy;

	if (argc == 2 && !strcmp(argv[1], "--nothing"))
		return 0; /* tasks.c starts processes */
	if (argc > 1) {
		fprintf(stderr, "usage: lab-calibrate\n");
		return 2;
	}
	c.machine = machine_look();
	printf("name,case,n,p10_us,p50_us,p90_us,mean_us\n# cpus=%u home=%d away=%d\n",
		c.machine.nr_cpus, c.machine.home, c.machine.away);
	measure(&c);
	machine_make_busy(&busy, &c.machine);
	c.busy = true;
	measure(&c);
	machine_end_busy(&busy);
	return fflush(stdout) ? 1 : 0;
}
