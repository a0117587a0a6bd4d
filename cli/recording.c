/* SPDX-License-Identifier: MIT */
#include "recording.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include "../engine/why.h"
#include "../report/record.h"
#include "../sim/job.h"
#include "../sim/jobfile.h"
#include "../sim/replay.h"

/* What every zstd frame begins with. */
static const unsigned char magic[] = {0x28, 0xb5, 0x2f, 0xfd};

static bool is_recording(const char *path)
{
	unsigned char start[sizeof(magic)];
	struct stat st;
	FILE *f;
	bool is;

	/* A pipe's first bytes would be gone. */
	if (stat(path, &st) || !S_ISREG(st.st_mode))
		return false;
	f = fopen(path, "rbe");
	is = f && fread(start, 1, sizeof(start), f) == sizeof(start) &&
	     !memcmp(start, magic, sizeof(magic));
	if (f)
		fclose(f);
	return is;
}

static int read_events(
	struct sim_replay *replay, struct report_reader *reader, char *why, size_t why_len)
{
	struct nb_event e;
	int rc;

	while ((rc = report_reader_next(reader, &e, why, why_len)) > 0) {
		rc = sim_replay_event(replay, &e, why, why_len);
		if (rc)
			return rc;
	}
	return rc;
}

static int load(
	struct sim_job **job, const char *path, const char *overrides, char *why, size_t why_len)
{
	struct sim_replay *replay = sim_replay_new(path);
	struct report_reader *reader = NULL;
	int err;

	if (!replay)
		return nb_why(why, why_len, -ENOMEM, "no memory");
	err = report_reader_open(&reader, path, why, why_len);
	if (!err)
		err = read_events(replay, reader, why, why_len);
	report_reader_close(reader);
	if (!err)
		return sim_replay_job(job, replay, overrides, why, why_len);
	sim_replay_free(replay);
	return err;
}

int recording_or_job(struct sim_job **job, const char *source, char *why, size_t why_len)
{
	const size_t len = sim_job_source_name(source);
	char *path = strndup(source, len);
	int err;

	if (!path)
		return nb_why(why, why_len, -ENOMEM, "no memory");
	if (is_recording(path))
		err = load(job, path, source[len] ? source + len + 1 : NULL, why, why_len);
	else
		err = sim_job_load(job, source, why, why_len);
	free(path);
	return err;
}
