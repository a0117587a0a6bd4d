# SPDX-License-Identifier: MIT
# One workload of lab/check: reads <out>-SIDE-N/run.csv of both sides (and stats.json of numabal's), prints medians, pages
# per node of the first run, and what of the bounds holds. Exit status 1: something does not.

function median(v, n,    i, j, x, s)
{
	for (i = 1; i <= n; i++) {
		x = v[i]
		for (j = i - 1; j > 0 && s[j] > x; j--)
			s[j + 1] = s[j]
		s[j + 1] = x
	}
	return n % 2 ? s[(n + 1) / 2] : (s[n / 2] + s[n / 2 + 1]) / 2
}

# Faults and moves of numabal's side: this file's lines "name": value.
function stat(file, name,    line, value)
{
	value = 0
	while ((getline line < file) > 0)
		if (line ~ "^    \"" name "\":") {
			sub(/.*: */, "", line)
			sub(/,.*/, "", line)
			value = line + 0
		}
	close(file)
	return value
}

function column(name)
{
	return name in at ? field[at[name]] + 0 : 0
}

# What of the late region is on the nodes that its threads mostly run on: all threads' shares.
function late_local(    i, sum)
{
	for (i = 0; i < threads; i++) {
		if (!(("t" i "_sl2_N" home[i]) in at) || column("t" i "_sl2_N" home[i]) < 0)
			return -1
		sum += column("t" i "_sl2_N" home[i])
	}
	return threads ? sum / threads : -1
}

# The node on which each thread does most of its work, from the middle of the run on: a thread that is away for a moment
# has not left its memory.
function find_nodes(side, i,    file, line, n, k, j, row, rows, used, best)
{
	file = out "-" side "-" i "/run.csv"
	while ((getline line < file) > 0)
		rows++
	close(file)
	getline line < file
	n = split(line, head, ",")
	delete at
	for (k = 1; k <= n; k++)
		at[head[k]] = k
	for (row = 1; (getline line < file) > 0; row++) {
		split(line, field, ",")
		if (row <= rows / 2)
			for (k = 0; ("t" k "_used_N0") in at; k++)
				for (j = 0; ("t" k "_used_N" j) in at; j++)
					used[k, j] = column("t" k "_used_N" j)
	}
	close(file)
	threads = 0
	for (k = 0; ("t" k "_used_N0") in at; k++) {
		best = 0
		for (j = 1; ("t" k "_used_N" j) in at; j++)
			if (column("t" k "_used_N" j) - used[k, j] > column("t" k "_used_N" best) - used[k, best])
				best = j
		home[k] = best
		threads++
	}
}

# Of each thread's slice, the share that is on the node it mostly runs on.
function at_home(    k, sum)
{
	for (k = 0; k < threads; k++)
		sum += column("t" k "_sl_N" home[k])
	return threads ? sum / threads : 0
}

function read_run(side, i,    file, line, n, k, began, last_t, tail, tail_n, late_began, local, start)
{
	find_nodes(side, i)
	file = out "-" side "-" i "/run.csv"
	getline line < file
	reached[i] = late[i] = never
	rows = 0
	start = -1
	while ((getline line < file) > 0) {
		split(line, field, ",")
		if (!began && column("bytes_total") > 0)
			began = column("t")
		if (start < 0)
			start = note_start(HALF_AREA)
		local = column("used_local_frac")
		if (began && at_home() >= 0.99 && reached[i] == never)
			reached[i] = column("t") - began
		if (late_local() >= 0) {
			late_began = late_began ? late_began : column("t")
			if (late_local() >= 0.99 && late[i] == never)
				late[i] = column("t") - late_began
		}
		locals[++rows] = local
		if (i == 1)
			series[side, rows] = pages_of() sprintf("  local %.3f", local)
		last_t = column("t")
	}
	close(file)
	for (k = rows > 5 ? rows - 4 : 1; k <= rows; k++) {
		tail += locals[k]
		tail_n++
	}
	final[i] = tail_n ? tail / tail_n : 0
	bytes[i] = last_t > began ? column("bytes_total") / (last_t - began) / 1e9 : 0
	faults[i] = column("numa_hint_faults")
	moves[i] = column("numa_pages_migrated")
	if (side == "numabal") {
		faults[i] = stat(out "-" side "-" i "/stats.json", "faults")
		moves[i] = stat(out "-" side "-" i "/stats.json", "moved")
	}
	if (i == 1)
		series_rows[side] = rows
	needed[i] = needed_moves(start)
}

function pages_of(    k, text)
{
	text = sprintf("%5.1f s", column("t"))
	for (k = 0; ("p0_N" k) in at; k++)
		text = text sprintf(" %7d", pages_on(k))
	return text
}

function pages_on(k,    p, sum)
{
	for (p = 0; ("p" p "_N" k) in at; p++)
		sum += column("p" p "_N" k)
	return sum
}

# The fullest node once most of the memory is there, before much of it has moved: all of it is made on one.
function note_start(most_of,    k, all, best)
{
	for (k = 0; ("p0_N" k) in at; k++) {
		all += pages_on(k)
		best = pages_on(k) > pages_on(best + 0) ? k : best
	}
	return all >= most_of ? best + 0 : -1
}

# Pages that are in the end elsewhere than on the node where all were made.
function needed_moves(from,    k, sum)
{
	for (k = 0; ("p0_N" k) in at; k++)
		sum += k == from ? 0 : pages_on(k)
	return sum
}

function seconds_of(x)
{
	return x >= never ? "never" : sprintf("%.1f", x)
}

function bound(text, holds)
{
	printf "  %s  %s\n", holds ? "holds" : "FAILS", text
	if (!holds)
		bad = 1
}

BEGIN {
	never = 1e9
	HALF_AREA = 32768 # pages; every workload's area has at least 256 MiB
	printf "\n%s, THP %s, medians of %d\n", name, thp, runs
	printf "  %-8s %12s %9s %12s %12s %9s %10s\n", "", "s to 99 %", "late area", "hint faults", "pages moved", "local", "GB/s"
	split("kernel numabal", sides, " ")
	for (s = 1; s <= 2; s++) {
		side = sides[s]
		for (i = 1; i <= runs; i++)
			read_run(side, i)
		R[side] = median(reached, runs)
		L[side] = median(late, runs)
		F[side] = median(faults, runs)
		M[side] = median(moves, runs)
		E[side] = median(final, runs)
		B[side] = median(bytes, runs)
		N[side] = median(needed, runs)
		printf "  %-8s %12s %9s %12d %12d %9.3f %10.2f\n", side, seconds_of(R[side]),
			workload == "late" ? seconds_of(L[side]) : "-", F[side], M[side], E[side], B[side]
	}
	if (workload ~ /^numa0/) {
		bound("99 % of the pages where they are used, in no more time than the kernel",
			R["numabal"] < never && R["numabal"] <= R["kernel"] + 0.5)
		if (thp == "never")
			bound("at most a hundredth of the kernel's hint faults", F["numabal"] * 100 <= F["kernel"])
	}
	if (workload == "zipf") {
		bound("at least as local as under the kernel", E["numabal"] >= E["kernel"] - 0.005)
		if (thp == "never")
			bound("at most a tenth of its hint faults", F["numabal"] * 10 <= F["kernel"])
		bound(sprintf("no more than 1.5 times the moves needed (%d)", N["numabal"]), M["numabal"] <= 1.5 * N["numabal"])
	}
	if (workload == "late")
		bound("the late area in place within 5 s of its first use", L["numabal"] <= 5)
	if (!quiet)
		for (s = 1; s <= 2; s++) {
			printf "  pages on each node, run 1 under %s:\n", sides[s]
			for (i = 1; i <= series_rows[sides[s]]; i++)
				print "    " series[sides[s], i]
		}
	exit bad
}
