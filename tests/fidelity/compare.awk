# SPDX-License-Identifier: MIT
# compare: published tables against simulated runs. Run by fidelity; the files and their order are there.
# Errors are (simulated - published) / published. For the 8-node table they are measured from the published range:
# 0 inside of it. Counters are compared by ratio, and by the ratio of the ratios between stages of the series.

BEGIN {
	FS = ","
	# The bounds. Errors in percent, factors as they are.
	BOUND_CELL = 15; BOUND_NUMA01 = 25; BOUND_MEAN = 8
	BOUND_TOTAL = 3; BOUND_RATIO = 2
	# A published change up to NO_CHANGE percent is none: then the simulated one may be of the same sign, or up to
	# STILL_NONE the other way.
	NO_CHANGE = 5; STILL_NONE = 10
	split("numa01 numa01_threadlocal numa02 numa02_smt", jobs, " ")
}

function base(path) { sub(/.*\//, "", path); sub(/\.csv$/, "", path); return path }
function abs(x) { return x < 0 ? -x : x }

/^#/ { next }
FNR == 1 || !(FILENAME in seen) {
	seen[FILENAME] = 1
	table = base(FILENAME)
	delete column
	for (i = 1; i <= NF; i++)
		column[$i] = i
	next
}

table == "systems" { row_of[$1] = $2; next }
table == "left_out" { left_out[$1, $2, $3] = $4; next }
table == "autonumabench-v5" || table == "autonumabench-v8" {
	if ($2 == "Elapsed" && ($3 in row_of))
		add_cell(table, tolower($1), $3, $4, $4)
	next
}
table == "autonumabench-8node" {
	if ($2 in row_of)
		add_cell(table, job_of($1), $2, $3, $4)
	next
}
table == "vmstat-2012" {
	if ($1 ~ /^autonumabench/ && ($2 in row_of))
		published_total[$1, $2, $3] = $4
	next
}
table == "nas_jobs" { nas_job[$1, $2] = $3; next }
table == "jbb_jobs" { jbb_job[$1] = $2; jbb_warehouses[$1] = $3; jbb_expected[$1] = $4; next }
table == "nas-2012" {
	if ($3 in row_of)
		add_change(table, $1 " " $2, $3, $4, mean_of("nas", nas_job[$1, $2], row_of[$3], "elapsed_s"))
	next
}
table == "specjbb-peaks-2012" {
	if (($3 in row_of) && ($2 == "Expctd Peak Bops" || $2 == "Actual Peak Bops" || $2 == "SpecJBB Bops"))
		add_change(table, $1 " " $2, $3, $4, jbb_value($1, $2, row_of[$3]))
	next
}
{
	# A run of ours. A job's name may hold commas, and is then quoted.
	job = $1
	if (job ~ /^"/) {
		match($0, /^"[^"]*"/)
		job = substr($0, 2, RLENGTH - 2)
		$0 = "job" substr($0, RLENGTH + 1)
	}
	key = table SUBSEP job SUBSEP $column["system"]
	n[key]++
	for (name in column)
		if (name ~ /^(numa|pgmig|thp)_?/ || name ~ /_s$/ || name == "operations")
			sum[key, name] += $column[name]
	next
}

function mean_of(table, job, row, name,  key)
{
	key = table SUBSEP job SUBSEP row
	if (!(key in n)) {
		fail("no run of " job " on " row)
		return 0
	}
	return sum[key, name] / n[key]
}

# The peak, the value at the expected peak, or the mean from there on. With more warehouses than CPUs SPECjbb declines, by what
# these jobs lack (collectors, locks), so the peak is looked for up to the expected one.
function jbb_value(benchmark, metric, row,  w, k, job, value, peak, all, nr_all)
{
	split(jbb_warehouses[benchmark], w, " ")
	for (k = 1; k in w; k++) {
		job = jbb_job[benchmark] ",warehouses=" w[k]
		value = mean_of(benchmark, job, row, "operations") / mean_of(benchmark, job, row, "elapsed_s")
		if (value > peak && w[k] + 0 <= jbb_expected[benchmark] + 0)
			peak = value
		if (w[k] + 0 == jbb_expected[benchmark] + 0 && metric == "Expctd Peak Bops")
			return value
		if (w[k] + 0 >= jbb_expected[benchmark] + 0) {
			all += value
			nr_all++
		}
	}
	return metric == "Actual Peak Bops" ? peak : all / nr_all
}

# A value whose change against the baseline (the first system of its kind) is compared by sign.
function add_change(table, what, sys, published, value)
{
	nr_changes++
	change_table[nr_changes] = table; change_what[nr_changes] = what; change_system[nr_changes] = sys
	change_published[nr_changes] = published; change_simulated[nr_changes] = value
}

function job_of(benchmark,  job)
{
	job = tolower(benchmark)
	sub(/_thread_alloc/, "_threadlocal", job)
	return job
}

function add_cell(table, job, sys, min, max)
{
	nr_cells++
	cell_table[nr_cells] = table; cell_job[nr_cells] = job; cell_system[nr_cells] = sys
	cell_min[nr_cells] = min; cell_max[nr_cells] = max
}

function runs_of(table) { return table == "autonumabench-8node" ? "8node" : "4node" }

function simulated(table, job, sys)
{
	return mean_of(runs_of(table), job, row_of[sys], "elapsed_s")
}

function reason_left_out(table, job, sys,  k)
{
	for (k in left_out) {
		split(k, part, SUBSEP)
		if (part[1] == table && (part[2] == "*" || part[2] == job) && (part[3] == "*" || part[3] == sys))
			return left_out[k]
	}
	return ""
}

function error_of(value, min, max)
{
	if (value < min)
		return 100 * (value - min) / min
	if (value > max)
		return 100 * (value - max) / max
	return 0
}

function beyond(ratio, factor) { return ratio > factor || ratio < 1 / factor }

function fail(text) { failure[++failures] = text }

# ---- elapsed times ----

function compare_cells(  i, value, error, reason, bound, note, last)
{
	for (i = 1; i <= nr_cells; i++) {
		if (cell_table[i] != last) {
			printf "\n%s: elapsed seconds\n%-32s %-18s %19s %10s %8s\n", last = cell_table[i], "job", "system",
				"published", "simulated", "error"
		}
		value = simulated(cell_table[i], cell_job[i], cell_system[i])
		error = error_of(value, cell_min[i], cell_max[i])
		reason = reason_left_out(cell_table[i], cell_job[i], cell_system[i])
		bound = cell_job[i] == "numa01" ? BOUND_NUMA01 : BOUND_CELL
		note = ""
		if (reason != "") {
			note = "  no bound: " reason
		} else {
			nr_bounded++
			sum_error += abs(error)
			if (abs(error) > abs(worst))
				worst = error
			if (abs(error) > bound) {
				note = sprintf("  OVER %d %%", bound)
				over[++nr_over] = cell_table[i] " " cell_job[i] " " cell_system[i]
			}
		}
		printf "%-32s %-18s %19s %10.2f %7.1f%%%s\n", cell_job[i], cell_system[i],
			cell_min[i] == cell_max[i] ? cell_min[i] : cell_min[i] " .. " cell_max[i], value, error, note
	}
	printf "\n%d cells under bounds: mean error %.1f %% (bound %d %%), worst %.1f %% (bound %d %%, numa01 %d %%)\n",
		nr_bounded, sum_error / nr_bounded, BOUND_MEAN, worst, BOUND_CELL, BOUND_NUMA01
	for (i = 1; i <= nr_over; i++)
		fail(over[i])
	if (sum_error / nr_bounded > BOUND_MEAN)
		fail("mean error")
}

# ---- signs: against the first system of the table ----

function agrees(published, ours)
{
	if (published * ours > 0)
		return 1
	return abs(published) <= NO_CHANGE && abs(ours) <= STILL_NONE
}

function compare_change(table, what, sys, p, s,  note, reason)
{
	note = agrees(p, s) ? "" : "  DIFFERS"
	reason = reason_left_out(table, what, sys)
	if (reason != "")
		note = "  no bound: " reason
	else if (note != "")
		fail("sign of " table " " what " " sys)
	printf "%-20s %-42s %-18s %9.1f%% %9.1f%%%s\n", table, what, sys, p, s, note
}

function compare_signs(  i, base_cell)
{
	printf "\nSigns of the changes against the table's baseline (a published change up to %d %% is none)\n", NO_CHANGE
	printf "%-20s %-42s %-18s %10s %10s\n", "table", "what", "system", "published", "simulated"
	for (i = 1; i <= nr_cells; i++) {
		if (row_of[cell_system[i]] == "none")
			base_cell = i
		else if (cell_table[i] != "autonumabench-8node") # there the one column that balances has no bound
			compare_change(cell_table[i], cell_job[i], cell_system[i], 100 * (cell_min[i] / cell_min[base_cell] - 1),
				100 * (simulated(cell_table[i], cell_job[i], cell_system[i]) / \
					simulated(cell_table[i], cell_job[i], cell_system[base_cell]) - 1))
	}
	for (i = 1; i <= nr_changes; i++) {
		if (row_of[change_system[i]] == "none")
			base_cell = i
		else
			compare_change(change_table[i], change_what[i], change_system[i],
				100 * (change_published[i] / change_published[base_cell] - 1),
				100 * (change_simulated[i] / change_simulated[base_cell] - 1))
	}
}

# ---- counters: totals of the four tests ----

function total(sys, column,  i, t)
{
	t = 0
	for (i = 1; i in jobs; i++)
		t += sum["4node", jobs[i], row_of[sys], column] / n["4node", jobs[i], row_of[sys]]
	return t
}

# How often the published totals hold the four tests: their duration over the sum of the tests' own times. The V5
# mail's totals hold two passes, the V8 mail's one.
function passes(table, sys,  i, t)
{
	t = 0
	for (i = 1; i <= nr_cells; i++)
		if (cell_table[i] == table && cell_system[i] == sys)
			t += cell_min[i]
	return int(published_total[table, sys, "Duration Elapsed"] / t + 0.5)
}

function compare_total(table, sys, label, column,  p, s, ratio, note, reason)
{
	p = published_total[table, sys, label]
	s = total(sys, column) * passes(table, sys)
	if (p == 0 || s == 0) {
		printf "%-20s %-18s %-22s %14.0f %14.0f%s\n", table, sys, label, p, s, p == s ? "" : "  DIFFERS"
		if (p != s)
			fail(table " " sys " " label)
		return
	}
	ratio = s / p
	note = beyond(ratio, BOUND_TOTAL) ? "  OVER" : ""
	reason = reason_left_out("vmstat-2012", label, sys)
	if (reason != "")
		note = "  no bound: " reason
	else if (note != "")
		fail(table " " sys " " label)
	printf "%-20s %-18s %-22s %14.0f %14.0f %8.2f%s\n", table, sys, label, p, s, ratio, note
}

# A ratio has no bound where one of its two totals has none.
function compare_stage(label, column, table_a, a, table_b, b,  p, s, x, note, reason)
{
	p = (published_total[table_b, b, label] / passes(table_b, b)) / (published_total[table_a, a, label] / passes(table_a, a))
	s = total(a, column) ? total(b, column) / total(a, column) : 0
	x = s / p
	note = beyond(x, BOUND_RATIO) ? "  OVER" : ""
	reason = reason_left_out("vmstat-2012", label, a)
	if (reason == "")
		reason = reason_left_out("vmstat-2012", label, b)
	if (reason != "")
		note = "  no bound: " reason
	else if (note != "")
		fail(label " from " a " to " b)
	printf "%-18s -> %-18s %-22s %10.3f %10.3f %8.2f%s\n", a, b, label, p, s, x, note
}

function compare_counters(  k, c, labels, columns, nr, stages, tables, j)
{
	nr = split("NUMA PTE updates,NUMA hint faults,NUMA hint local faults,NUMA pages migrated,Page migrate success,Page migrate failure,THP fault alloc,Duration User,Duration System,Duration Elapsed", labels, ",")
	split("numa_pte_updates,numa_hint_faults,numa_hint_faults_local,numa_pages_migrated,pgmigrate_success,pgmigrate_fail,thp_fault_alloc,user_s,system_s,elapsed_s", columns, ",")
	split("stats-v5r1,thpmigrate-v5r1,adaptscan-v5r1,delaystart-v5r4,stats-v6r15,balancenuma-v8r6", stages, ",")
	for (k = 1; k in stages; k++)
		tables[k] = k <= 4 ? "autonumabench-v5" : "autonumabench-v8"
	printf "\nTotals of the four tests (bound: a factor of %d)\n%-20s %-18s %-22s %14s %14s %8s\n", BOUND_TOTAL, "table",
		"system", "counter", "published", "simulated", "ratio"
	for (k = 1; k in stages; k++)
		for (c = 1; c <= nr; c++)
			compare_total(tables[k], stages[k], labels[c], columns[c])
	printf "\nFrom stage to stage (bound: a factor of %d between the ratios)\n%-40s %-22s %10s %10s %8s\n", BOUND_RATIO,
		"stages", "counter", "published", "simulated", "ratio"
	for (c = 1; c <= 4; c++) {
		compare_stage(labels[c], columns[c], tables[2], stages[2], tables[3], stages[3])
		compare_stage(labels[c], columns[c], tables[3], stages[3], tables[4], stages[4])
		compare_stage(labels[c], columns[c], tables[4], stages[4], tables[6], stages[6])
	}
}

END {
	compare_cells()
	compare_signs()
	compare_counters()
	print ""
	for (k in left_out) {
		split(k, part, SUBSEP)
		printf "Left out of the bounds: %s %s %s: %s\n", part[1], part[2], part[3], left_out[k]
	}
	for (i = 1; i <= failures; i++)
		print "Out of bounds: " failure[i]
	print failures ? failures " bounds do not hold." : "Every bound holds."
	exit failures > 0
}
