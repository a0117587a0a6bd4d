# SPDX-License-Identifier: MIT
# mainline: the tables of 2023 against simulated runs. Run by the script of this name; the files and their order are there.
# Times are compared by error, counters by ratio; both columns by the sign of the change between them.

BEGIN {
	FS = ","
	BOUND_TIME = 20; BOUND_FACTOR = 3; CHANGE = 10
	# Runs of a benchmark in a mail's totals: Milan's NUMA tests 7 (duration over mean time), its skip counts 3.
	TOTAL_RUNS = 7; SKIP_RUNS = 3
	base_row["milan"] = "linux-6.7"; next_row["milan"] = "linux-6.8"
	base_row["epyc4"] = "linux-6.4"; next_row["epyc4"] = "linux-6.7"
	job["NUMA01"] = job["numa01"] = "numa01"
	job["NUMA01_THREADLOCAL"] = job["numa01_THREAD_ALLOC"] = "numa01_threadlocal"
	job["NUMA02"] = "numa02"
	split("Amean syst,system_s,1;Amean elsp,elapsed_s,1;Duration User,user_s,7;Duration System,system_s,7;" \
		"Duration Elapsed,elapsed_s,7;NUMA PTE updates,numa_pte_updates,7;NUMA hint faults,numa_hint_faults,7;" \
		"NUMA pages migrated,numa_pages_migrated,7;AutoNUMA cost,autonuma,7;real_s,elapsed_s,1;user_s,user_s,1;" \
		"sys_s,system_s,1;numa_pte_updates,numa_pte_updates,1;numa_hint_faults,numa_hint_faults,1;" \
		"numa_hint_faults_local,numa_hint_faults_local,1;numa_pages_migrated,numa_pages_migrated,1", list, ";")
	for (i in list) {
		split(list[i], m, ",")
		field[m[1]] = m[2]
		runs[m[1]] = m[3]
	}
	printf "%-34s %-22s %12s %12s %7s %12s %12s %7s %8s %8s\n", "benchmark", "metric", "published",
		"simulated", "", "published", "simulated", "", "change", "simul."
}

function base(path) { sub(/.*\//, "", path); sub(/\.csv$/, "", path); return path }
function abs(x) { return x < 0 ? -x : x }
function is_time(metric) { return metric ~ /elsp|Elapsed|real_s/ }
function is_count(metric) { return metric ~ /NUMA|^numa_|^skip/ }

function mean(machine, name, row, what,    k)
{
	k = machine SUBSEP name SUBSEP row
	if (!n[k])
		return -1
	if (what == "autonuma")
		return (7 * sum[k, "numa_pte_updates"] + 5000 * sum[k, "numa_hint_faults"] + \
			19 * sum[k, "numa_pages_migrated"]) / 1e6 / n[k]
	return sum[k, what] / n[k]
}

function verdict(metric, published, simulated,    r)
{
	if (is_time(metric))
		return sprintf("%+.1f%%", 100 * (simulated - published) / published)
	r = published > 0 && simulated > 0 ? simulated / published : 0
	return r > 0 ? sprintf("x%.2f", r) : "-"
}

function off(metric, published, simulated)
{
	if (is_time(metric))
		return abs(simulated - published) > BOUND_TIME / 100 * published
	if (!is_count(metric))
		return 0
	return simulated > BOUND_FACTOR * published || simulated * BOUND_FACTOR < published
}

function percent(a, b) { return a > 0 ? 100 * (b - a) / a : b > 0 ? 1e6 : 0 }
function show(p) { return p >= 1e6 ? "from 0" : sprintf("%+.1f%%", p) }

function cell(machine, benchmark, metric, p1, p2, s1, s2,    c1, c2, bad, k, why)
{
	c1 = percent(p1, p2)
	c2 = percent(s1, s2)
	if (off(metric, p1, s1))
		bad = bad " base"
	if (off(metric, p2, s2))
		bad = bad " patched"
	if (abs(c1) > CHANGE && c1 * c2 <= 0)
		bad = bad " sign"
	k = machine SUBSEP benchmark SUBSEP metric
	why = bad == "" ? "" : k in left_out ? "  left out: " left_out[k] : "  OFF:" bad
	printf "%-34s %-22s %12.6g %12.6g %7s %12.6g %12.6g %7s %8s %8s%s\n", machine " " benchmark, metric, p1, s1,
		verdict(metric, p1, s1), p2, s2, verdict(metric, p2, s2), show(c1), show(c2), why
	cells++
	if (why ~ /OFF/)
		failed++
	if (why ~ /left out/)
		named++
}

/^#/ { next }
FNR == 1 || !(FILENAME in seen) {
	seen[FILENAME] = 1
	table = base(FILENAME)
	delete column
	for (i = 1; i <= NF; i++)
		column[$i] = i
	next
}

table == "mainline_left_out" { left_out[$1, $2, $3] = $4; next }
table == "milan" || table == "epyc4" {
	# A job's name holds commas, and is then quoted.
	name = $1
	first = 1
	if (name ~ /^"/)
		while ($first !~ /"$/)
			first++
	sub(/^"/, "", name)
	sub(/[:"].*/, "", name)
	k = table SUBSEP name SUBSEP $(column["system"] + first - 1)
	n[k]++
	for (c in column)
		sum[k, c] += $(column[c] + first - 1)
	next
}
table == "milan-2node-skip-reasons" {
	what = "numa_skip_" $1
	cell("milan", "skips", "skip " $1, $2, $3, SKIP_RUNS * mean("milan", "numa01_threadlocal", "linux-6.7", what),
		SKIP_RUNS * mean("milan", "numa01_threadlocal", "linux-6.8", what))
	next
}
table == "milan-2node-6.6rc6" || table == "epyc4-2node-6.6rc4" {
	machine = substr(table, 1, 5)
	patched = table ~ /epyc/ ? $(column["v1r13"]) : $(column["patched"])
	if (!($1 in job) || !($2 in field)) {
		printf "%-34s %-22s %12s %12s %7s %12s\n", machine " " $1, $2, $(column["base"]), "-", "", patched
		not_run++
		next
	}
	times = machine == "milan" ? runs[$2] : 1
	cell(machine, $1, $2, $(column["base"]), patched, times * mean(machine, job[$1], base_row[machine], field[$2]),
		times * mean(machine, job[$1], next_row[machine], field[$2]))
}

END {
	printf "\n%d cells of two columns: %d off, %d left out by name, %d not run\n", cells, failed, named, not_run
	print "Bounds: elapsed times " BOUND_TIME " %, counters a factor of " BOUND_FACTOR \
		", the sign of each published change over " CHANGE " %"
	exit failed > 0
}
