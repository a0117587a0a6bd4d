# SPDX-License-Identifier: MIT
# compare: runs of the lab against runs of the simulator, kind by kind (see series.awk for what it reads).
#
# Pages per node, each second: in each run the nodes are put in descending order of their pages, for which of them a thread
# ends on differs from run to run; of each place the median over the runs counts, as a share of the pages that there are in the
# end. Good: no more than BOUND_PAGES off, or within what the lab's runs span at that second.
# Counters: at the last second that all runs have, the mean over the runs. Good: no more than BOUND_COUNTER off, or within
# what the lab's runs span.
# Set: decides = 1 where what is off counts; times = runs that the lab must have; csv = a file, or empty; quiet = only what
# is off.

BEGIN {
	FS = ","
	BOUND_PAGES = 5; BOUND_COUNTER = 20
	nr_counters = split("numa_pte_updates,numa_hint_faults,numa_hint_faults_local,numa_pages_migrated", counter, ",")
}

/^#/ || /^kind,metric/ { next }
$1 != "lab" && $1 != "sim" {
	left_out[$1, $2] = $3
	next
}
{
	if (!($2 in nodes)) {
		order[++nr_kinds] = $2
		nodes[$2] = NF - 4 - nr_counters
	}
	if ($3 > runs[$1, $2])
		runs[$1, $2] = $3
	k = $1 SUBSEP $2 SUBSEP $3
	if (!(k in last) || $4 > last[k])
		last[k] = $4
	for (i = 1; i <= NF - 4; i++)
		seen[k, $4, i] = $(4 + i)
}

function abs(x) { return x < 0 ? -x : x }

function last_second(kind,    s, r, k, least)
{
	least = -1
	for (s = 1; s <= 2; s++)
		for (r = 1; r <= runs[s == 1 ? "lab" : "sim", kind]; r++) {
			k = last[s == 1 ? "lab" : "sim", kind, r]
			if (least < 0 || k < least)
				least = k
		}
	return least
}

# The pages of a run in the end.
function total(side, kind, run,    i, sum)
{
	for (i = 1; i <= nodes[kind]; i++)
		sum += seen[side, kind, run, last[side, kind, run], nr_counters + i]
	return sum > 0 ? sum : 1
}

# Over the runs of a side: lowest, middle, highest share of the node in that place; into found[].
function shares(side, kind, second, place,    n, r, i, x, sorted)
{
	n = runs[side, kind]
	for (r = 1; r <= n; r++) {
		x = 100 * seen[side, kind, r, second, nr_counters + place] / total(side, kind, r)
		for (i = r - 1; i >= 1 && sorted[i] > x; i--)
			sorted[i + 1] = sorted[i]
		sorted[i + 1] = x
	}
	found["min"] = sorted[1]
	found["max"] = sorted[n]
	found["median"] = n % 2 ? sorted[(n + 1) / 2] : (sorted[n / 2] + sorted[n / 2 + 1]) / 2
}

function counters(side, kind, second, which,    n, r, x, sum, squares)
{
	n = runs[side, kind]
	found["min"] = found["max"] = seen[side, kind, 1, second, which] + 0
	for (r = 1; r <= n; r++) {
		x = seen[side, kind, r, second, which]
		sum += x
		squares += x * x
		if (x < found["min"])
			found["min"] = x
		if (x > found["max"])
			found["max"] = x
	}
	found["mean"] = sum / n
	x = n > 1 ? (squares - sum * sum / n) / (n - 1) : 0
	found["cv"] = sum > 0 && x > 0 ? 100 * sqrt(x) / (sum / n) : 0
}

function verdict(kind, metric, off)
{
	cells++
	if (!off)
		return "ok"
	if ((kind, metric) in left_out) {
		named++
		return "left out: " left_out[kind, metric]
	}
	failed++
	return "OFF"
}

function write_csv(kind, metric, second, lab, lab_min, lab_max, sim, difference, off)
{
	if (csv != "")
		printf "%s,%s,%s,%.6g,%.6g,%.6g,%.6g,%.3g,%s\n", kind, metric, second, lab, lab_min, lab_max, sim,
			difference, off ? "off" : "ok" > csv
}

function compare_pages(kind, end,    s, p, lab, low, high, sim, d, line, bad, worst, worst_at, off, wrong)
{
	if (!quiet)
		printf "  %4s | %-*s | %-*s |\n", "s", 21 * nodes[kind], "lab: % of pages on the fullest node, the next: median (span)",
		7 * nodes[kind], "simulated"
	for (s = 0; s <= end; s++) {
		line = ""
		sim = ""
		off = 0
		for (p = 1; p <= nodes[kind]; p++) {
			shares("lab", kind, s, p)
			lab = found["median"]; low = found["min"]; high = found["max"]
			shares("sim", kind, s, p)
			d = abs(found["median"] - lab)
			line = line sprintf(" %5.1f (%5.1f..%5.1f)", lab, low, high)
			sim = sim sprintf(" %6.1f", found["median"])
			wrong = d > BOUND_PAGES && (found["median"] < low || found["median"] > high)
			off = off || wrong
			write_csv(kind, "place" p, s, lab, low, high, found["median"], found["median"] - lab, wrong)
			if (d > worst) {
				worst = d
				worst_at = s
			}
		}
		bad += off
		if (!quiet || off)
			printf "  %4d |%s |%s |%s\n", s, line, sim, off ? " off" : ""
	}
	printf "  pages per node: largest difference %.1f %% (at %d s), %d of %d seconds off: %s\n", worst, worst_at, bad, end + 1,
		verdict(kind, "pages", bad > 0)
}

function compare_counters(kind, end,    c, lab, low, high, cv, d, off)
{
	printf "  %-24s %10s %10s %10s %6s %10s %10s %8s\n", "counter", "lab mean", "lowest", "highest", "CV", "sim. mean",
		"sim. CV", "off by"
	for (c = 1; c <= nr_counters; c++) {
		counters("lab", kind, end, c)
		lab = found["mean"]; low = found["min"]; high = found["max"]; cv = found["cv"]
		counters("sim", kind, end, c)
		d = lab > 0 ? 100 * (found["mean"] - lab) / lab : found["mean"] > 0 ? 1e6 : 0
		off = abs(d) > BOUND_COUNTER && (found["mean"] < low || found["mean"] > high)
		write_csv(kind, counter[c], end, lab, low, high, found["mean"], d, off)
		if (quiet && !off) {
			verdict(kind, counter[c], off)
			continue
		}
		printf "  %-24s %10.0f %10.0f %10.0f %5.1f%% %10.0f %9.1f%% %7.1f%%  %s\n", counter[c], lab, low, high, cv,
			found["mean"], found["cv"], d, verdict(kind, counter[c], off)
	}
}

END {
	if (csv != "")
		print "kind,metric,second,lab,lab_min,lab_max,simulated,difference_pct,verdict" > csv
	for (i = 1; i <= nr_kinds; i++) {
		kind = order[i]
		printf "\n%s: %d runs of the lab, %d simulated\n", kind, runs["lab", kind], runs["sim", kind]
		if (runs["lab", kind] < times) {
			few++
			printf "  fewer runs than %d\n", times
		}
		if (!runs["lab", kind] || !runs["sim", kind])
			continue
		end = last_second(kind)
		compare_pages(kind, end)
		compare_counters(kind, end)
	}
	printf "\n%d kinds, %d cells: %d off, %d left out by name; %d kinds with fewer than %d runs of the lab\n", nr_kinds, cells,
		failed, named, few, times
	printf "Bounds: pages per node %d %% of all at each second, counters %d %%; or what the lab's runs span, where that is wider\n",
		BOUND_PAGES, BOUND_COUNTER
	exit decides && (failed > 0 || few > 0)
}
