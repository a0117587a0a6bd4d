/* SPDX-License-Identifier: MIT */
#include "explain.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include "../engine/machine.h"
#include "../engine/why.h"
#include "json.h"
#include "summary.h"
#include "text.h"
#include "words.h"

/* ---- the target ---- */

static int parse_hex(const char *text, uint64_t *out)
{
	char *end;

	if (strncmp(text, "0x", 2) || !strchr("0123456789abcdefABCDEF", text[2]) || !text[2])
		return -EINVAL;
	errno = 0;
	*out = strtoull(text + 2, &end, 16);
	if (*end)
		return -EINVAL;
	return errno ? -ERANGE : 0;
}

static int parse_decimal(const char *text, size_t len, uint64_t max, uint64_t *out)
{
	char digits[24];
	int64_t value;
	int err;

	if (!len || len >= sizeof(digits))
		return len ? -ERANGE : -EINVAL;
	memcpy(digits, text, len);
	digits[len] = 0;
	err = nb_parse_i64(digits, &value);
	if (err)
		return err;
	*out = (uint64_t)value;
	return value < 0 ? -EINVAL : *out > max ? -ERANGE : 0;
}

static int parse_place(struct report_target *t, const char *text)
{
	const char *colon = strchr(text, ':');
	uint64_t mm = 0;
	int err = 0;

	if (!colon)
		return parse_hex(text, &t->addr);
	err = parse_decimal(text, (size_t)(colon - text), UINT32_MAX, &mm);
	t->has_mm = true;
	t->mm = (uint32_t)mm;
	return err ? err : parse_hex(colon + 1, &t->addr);
}

int report_target_parse(struct report_target *out, enum report_target_kind kind, const char *text,
	char *why, size_t why_len)
{
	struct report_target t = {.kind = kind};
	int err = -EINVAL;

	if (kind == REPORT_TARGET_VMA)
		err = parse_decimal(text, strlen(text), INT64_MAX, &t.number);
	if (err == -EINVAL)
		err = parse_place(&t, text);
	else if (!err && !t.number)
		err = -ERANGE;
	if (err)
		return nb_why(why, why_len, err,
			"\"%.80s\" is not a%s; expected %s0xADDRESS or MM:0xADDRESS", text,
			kind == REPORT_TARGET_VMA ? " VMA" : "n address",
			kind == REPORT_TARGET_VMA ? "a number from 1, " : "");
	*out = t;
	return 0;
}

/* ---- what belongs to it ---- */

struct range {
	uint64_t start, end;
};

/* The target as far as it is known by now. */
struct watch {
	struct report_target target;
	bool bound;  /* an address space was found that has it */
	bool active; /* it is mapped now */
	uint32_t mm;
	uint64_t number;      /* of the VMA it is in */
	struct range vma, of; /* the VMA; the part that is asked about */
	uint64_t nr_vmas;     /* mapped so far in the recording */
	uint64_t others;      /* VMAs of other address spaces that hold the address too */
};

static bool holds(struct range r, uint64_t addr)
{
	return addr >= r.start && addr < r.end;
}

static bool overlap(struct range a, struct range b)
{
	return a.start < b.end && b.start < a.end;
}

static struct range range_at(uint64_t addr, uint64_t pages)
{
	uint64_t end;

	if (__builtin_add_overflow(addr, pages * NB_PAGE_SIZE, &end))
		end = UINT64_MAX;
	return (struct range){addr, end};
}

/* Pages an event is about; a huge page's event may name any address in it. */
static struct range range_of(const struct nb_event *e)
{
	if (e->huge)
		return range_at(e->addr & ~(uint64_t)(NB_HUGE_SIZE - 1), NB_HUGE_PAGES);
	return range_at(e->addr & ~(uint64_t)(NB_PAGE_SIZE - 1), e->pages ? e->pages : 1);
}

static bool is_wanted(struct watch *w, const struct nb_event *e, struct range vma)
{
	const struct report_target *t = &w->target;

	if (t->number)
		return w->nr_vmas == t->number;
	if (!holds(vma, t->addr) || (t->has_mm && t->mm != e->mm))
		return false;
	if (w->bound && w->mm != e->mm) {
		w->others++;
		return false;
	}
	return true;
}

static void see_map(struct watch *w, const struct nb_event *e)
{
	const struct range vma = range_at(e->addr, e->pages);

	w->nr_vmas++;
	if (!is_wanted(w, e, vma))
		return;
	w->bound = w->active = true;
	w->mm = e->mm;
	w->number = w->nr_vmas;
	w->vma = w->of = vma;
	if (w->target.kind == REPORT_TARGET_PAGE)
		w->of = range_at(w->target.addr & ~(uint64_t)(NB_PAGE_SIZE - 1), 1);
}

/* A whole scan that did not take place (it names no VMA) is a reason for everything in the address
 * space. */
static bool is_whole_scan(const struct nb_event *e)
{
	return e->type == NB_EVENT_SCAN_SKIP && !e->pages;
}

static bool concerns(const struct watch *w, const struct nb_event *e)
{
	switch (e->type) {
	case NB_EVENT_VMA_MAP:
		return e->addr == w->vma.start && w->number == w->nr_vmas;
	case NB_EVENT_MM_GONE:
		return true;
	case NB_EVENT_SCAN_SKIP:
		return is_whole_scan(e) || overlap(range_of(e), w->of);
	case NB_EVENT_POLICY:
		return !e->pages || overlap(range_of(e), w->of);
	case NB_EVENT_VMA_UNMAP:
	case NB_EVENT_HINT_FAULT:
	case NB_EVENT_MOVE_ASKED:
	case NB_EVENT_MOVE_DONE:
	case NB_EVENT_MOVE_FAILED:
	case NB_EVENT_SPLIT:
	case NB_EVENT_LAZY:
		return overlap(range_of(e), w->of);
	default:
		return false;
	}
}

/* After the event: is it still there? */
static void see_end(struct watch *w, const struct nb_event *e)
{
	const struct range gone = range_of(e);

	if (e->type == NB_EVENT_MM_GONE)
		w->active = false;
	if (e->type == NB_EVENT_VMA_UNMAP && gone.start <= w->of.start && gone.end >= w->of.end)
		w->active = false;
}

/* ---- telling ---- */

struct explain {
	FILE *f;
	const struct report_explain_options *options;
	const struct report_record_header *header;
	struct watch w;
	struct report_summary summary;
	uint64_t nr_lines, left_out;
	/* A run of skips for one reason, told when it is over. */
	struct nb_event skip;
	uint64_t skip_times, skip_until_ns;
	/* An armed range: where it ends is known from what the scan did next. */
	struct nb_event arm;
	bool arm_waits;
	int err;
};

static const char *kind_name(const struct explain *x)
{
	return x->options->target.kind == REPORT_TARGET_VMA ? "VMA" : "page";
}

static void print_title(const struct explain *x)
{
	const struct report_record_header *h = x->header;

	report_put_ascii(x->f, h->job);
	fputs(" with ", x->f);
	report_put_ascii(x->f, h->system);
	fputs(" on ", x->f);
	report_put_ascii(x->f, h->machine);
	fprintf(x->f, ", iteration %u, seed %" PRIu64 "\n", h->iteration, h->seed);
	if (x->options->target.kind == REPORT_TARGET_PAGE)
		fprintf(x->f, "The page at 0x%" PRIx64 " in mm %u\n", x->w.of.start, x->w.mm);
	else
		fprintf(x->f, "VMA %" PRIu64 ", 0x%" PRIx64 " in mm %u\n", x->w.number,
			x->w.vma.start, x->w.mm);
	for (unsigned int i = 0; i < h->nr_areas; i++) {
		const struct report_area *a = &h->areas[i];

		if (a->mm != x->w.mm || !overlap((struct range){a->start, a->end}, x->w.of))
			continue;
		fputs("In the area ", x->f);
		report_put_ascii(x->f, a->name);
		fputc('\n', x->f);
	}
	fputc('\n', x->f);
}

static json_t *node_json(const struct explain *x, int16_t node)
{
	return node < 0 ? json_null() : json_integer(x->header->node_ids[node]);
}

static json_t *addr_json(uint64_t addr)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%" PRIx64, addr);
	return json_string(text);
}

static void dump(struct explain *x, json_t *o)
{
	if (!o)
		x->err = -ENOMEM;
	else
		json_dumpf(o, x->f, JSON_COMPACT | JSON_ENSURE_ASCII | JSON_REAL_PRECISION(17));
	json_decref(o);
}

static void begin_json(struct explain *x)
{
	const struct report_record_header *h = x->header;
	json_t *target = json_pack("{s:s,s:I,s:I,s:o,s:o}", "kind", kind_name(x), "mm",
		(json_int_t)x->w.mm, "vma", (json_int_t)x->w.number, "start",
		addr_json(x->w.of.start), "end", addr_json(x->w.of.end));

	fprintf(x->f, "{\"schema\":%d,\"version\":\"%s\",\"recording\":", REPORT_SCHEMA,
		NB_VERSION);
	dump(x, json_pack("{s:o,s:o,s:o,s:I,s:o}", "machine", report_json_text(h->machine), "job",
			report_json_text(h->job), "system", report_json_text(h->system),
			"iteration", (json_int_t)h->iteration, "seed", report_json_u64(h->seed)));
	fputs(",\"target\":", x->f);
	dump(x, target);
	fputs(",\"events\":[", x->f);
}

static void put_json_line(struct explain *x, const struct nb_event *e, const char *text,
	uint64_t times, uint64_t until)
{
	json_t *o = json_pack("{s:o,s:s,s:s,s:I,s:o,s:I,s:o,s:o,s:b,s:b}", "time_s",
		report_json_real((double)e->time_ns / 1e9), "event", nb_event_names[e->type].name,
		"text", text, "task", (json_int_t)e->task, "addr", addr_json(e->addr), "pages",
		(json_int_t)e->pages, "node_from", node_json(x, e->node_from), "node_to",
		node_json(x, e->node_to), "huge", e->huge, "write", e->write);

	if (times > 1) {
		json_object_set_new(o, "times", report_json_u64(times));
		json_object_set_new(o, "until_s", report_json_real((double)until / 1e9));
	}
	fputs(x->nr_lines > 1 ? ",\n" : "\n", x->f);
	dump(x, o);
}

static void put_text_line(struct explain *x, const struct nb_event *e, const char *text,
	uint64_t times, uint64_t until)
{
	char from[REPORT_TIME_LEN], to[REPORT_TIME_LEN];

	fprintf(x->f, "%14s s  %s", report_seconds(from, e->time_ns), text);
	if (times > 1)
		fprintf(x->f, " (%" PRIu64 " times until %s s)", times, report_seconds(to, until));
	fputc('\n', x->f);
}

static void put_line(struct explain *x, const struct nb_event *e, uint64_t times, uint64_t until)
{
	char text[REPORT_WORDS_LEN];

	if (x->nr_lines == x->options->limit) {
		x->left_out++;
		return;
	}
	x->nr_lines++;
	report_words(text, e, x->header->node_ids);
	if (x->options->json)
		put_json_line(x, e, text, times, until);
	else
		put_text_line(x, e, text, times, until);
}

static void flush_skips(struct explain *x)
{
	if (x->skip_times)
		put_line(x, &x->skip, x->skip_times, x->skip_until_ns);
	x->skip_times = 0;
}

static void tell(struct explain *x, const struct nb_event *e)
{
	report_summary_add(&x->summary, e);
	if (e->type != NB_EVENT_SCAN_SKIP) {
		flush_skips(x);
		put_line(x, e, 1, e->time_ns);
		return;
	}
	if (x->skip_times && x->skip.reason != e->reason)
		flush_skips(x);
	if (!x->skip_times++)
		x->skip = *e;
	x->skip_until_ns = e->time_ns;
}

/*
 * An arm event says where the range starts and how many pages were there, not where it ends: holes
 * are not counted. Where the scan's next event names a place further on in the VMA, the range ends
 * there; where it names another VMA, the range ends with this one.
 */
static uint64_t end_of_arm(const struct explain *x, const struct nb_event *next)
{
	const struct nb_event *arm = &x->arm;
	const bool same_scan =
		next && next->mm == arm->mm && next->time_ns == arm->time_ns &&
		(next->type == NB_EVENT_SCAN_ARM || next->type == NB_EVENT_SCAN_SKIP ||
			next->type == NB_EVENT_SCAN_END);
	const struct range counted =
		range_at(arm->addr, arm->pages > arm->arg ? arm->pages : arm->arg);

	if (!same_scan)
		return counted.end < x->w.vma.end ? counted.end : x->w.vma.end;
	return next->addr > arm->addr && next->addr < x->w.vma.end ? next->addr : x->w.vma.end;
}

static void settle_arm(struct explain *x, const struct nb_event *next)
{
	x->arm_waits = false;
	if (overlap((struct range){x->arm.addr, end_of_arm(x, next)}, x->w.of))
		tell(x, &x->arm);
}

static void take(struct explain *x, const struct nb_event *e)
{
	const bool was_bound = x->w.bound;

	if (x->arm_waits)
		settle_arm(x, e);
	if (e->type == NB_EVENT_VMA_MAP)
		see_map(&x->w, e);
	if (!x->w.active || e->mm != x->w.mm)
		return;
	if (!was_bound) {
		if (x->options->json)
			begin_json(x);
		else
			print_title(x);
	}
	if (e->type == NB_EVENT_SCAN_ARM && holds(x->w.vma, e->addr)) {
		x->arm = *e;
		x->arm_waits = true;
	} else if (concerns(&x->w, e)) {
		tell(x, e);
	}
	see_end(&x->w, e);
}

static void finish_text(const struct explain *x)
{
	if (x->left_out)
		fprintf(x->f, "... and %" PRIu64 " more lines, left out (limit %" PRIu64 ")\n",
			x->left_out, x->options->limit);
	fputc('\n', x->f);
	report_summary_print(&x->summary, x->f);
	if (x->w.others)
		fprintf(x->f,
			"  %" PRIu64 " VMAs of other address spaces hold this address too: name "
			"one as MM:0xADDRESS\n",
			x->w.others);
}

static void finish_json(struct explain *x)
{
	fprintf(x->f,
		"\n],\"left_out\":%" PRIu64 ",\"others\":%" PRIu64 ",\"summary\":", x->left_out,
		x->w.others);
	dump(x, report_summary_json(&x->summary));
	fputs("}\n", x->f);
}

static int not_found(const struct explain *x, char *why, size_t why_len)
{
	const struct report_target *t = &x->w.target;

	if (t->number)
		return nb_why(why, why_len, -ENOENT,
			"no VMA %" PRIu64 ": %" PRIu64 " were mapped in this recording", t->number,
			x->w.nr_vmas);
	if (t->has_mm)
		return nb_why(why, why_len, -ENOENT,
			"no VMA of mm %u held 0x%" PRIx64 " in this recording", t->mm, t->addr);
	return nb_why(
		why, why_len, -ENOENT, "no VMA held 0x%" PRIx64 " in this recording", t->addr);
}

static int read_all(struct explain *x, struct report_reader *reader, char *why, size_t why_len)
{
	struct nb_event e;
	int got;

	while ((got = report_reader_next(reader, &e, why, why_len)) > 0)
		take(x, &e);
	if (got < 0)
		return got;
	if (x->arm_waits)
		settle_arm(x, NULL);
	if (!x->w.bound)
		return not_found(x, why, why_len);
	flush_skips(x);
	if (x->options->json)
		finish_json(x);
	else
		finish_text(x);
	if (!x->err && ferror(x->f))
		x->err = -EIO;
	return x->err ? nb_why(why, why_len, x->err, "explain: %s", strerror(-x->err)) : 0;
}

int report_explain(FILE *f, struct report_reader *reader,
	const struct report_explain_options *options, char *why, size_t why_len)
{
	struct explain x = {
		.f = f,
		.options = options,
		.header = report_reader_header(reader),
		.w = {.target = options->target},
	};
	int err = report_summary_init(&x.summary, x.header->nr_nodes, x.header->node_ids);

	if (err)
		return nb_why(why, why_len, err, "explain: out of memory");
	err = read_all(&x, reader, why, why_len);
	report_summary_free(&x.summary);
	return err;
}
