# SPDX-License-Identifier: MIT
# series: runs of the lab (lab-work's --csv) or of the simulator (sim --format json), as lines that compare.awk reads:
#   SIDE,KIND,RUN,second,numa_pte_updates,numa_hint_faults,numa_hint_faults_local,numa_pages_migrated,pages per node...
# Nodes in descending order of their pages. At whole seconds; what was seen between them is interpolated.
# Set: side, kind. A file of the lab's is a run; a line of the simulator's JSON is one.

BEGIN {
	FS = ","
	nr_counters = split("numa_pte_updates,numa_hint_faults,numa_hint_faults_local,numa_pages_migrated", counter, ",")
	split("pte_updates,hint_faults,hint_faults_local,pages_migrated", json, ",")
}

function forget() { rows = 0; nodes = 0; delete time; delete value; delete page }

# A row's value of the k-th counter, or of the node k - nr_counters, at second s, between rows r and r + 1.
function at(s, r, k,    share)
{
	if (r == rows)
		return value[r, k]
	share = time[r + 1] > time[r] ? (s - time[r]) / (time[r + 1] - time[r]) : 0
	return value[r, k] + (share < 0 ? 0 : share) * (value[r + 1, k] - value[r, k])
}

function write_out(run,    s, r, k, i, line, last, pages, sorted)
{
	last = rows ? int(time[rows] + 0.5) : -1
	for (s = 0; s <= last; s++) {
		for (r = 1; r < rows && time[r + 1] <= s; r++)
			;
		line = side "," kind "," run "," s
		for (k = 1; k <= nr_counters; k++)
			line = line "," at(s, r, k)
		for (k = 1; k <= nodes; k++) {
			pages = at(s, r, nr_counters + k)
			for (i = k - 1; i >= 1 && sorted[i] < pages; i--)
				sorted[i + 1] = sorted[i]
			sorted[i + 1] = pages
		}
		for (k = 1; k <= nodes; k++)
			line = line "," sorted[k]
		print line
	}
	forget()
}

# ---- the simulator ----

function number(text, name)
{
	return match(text, "\"" name "\":[-0-9.e+]+") ? substr(text, RSTART + length(name) + 3, RLENGTH - length(name) - 3) + 0 : 0
}

function read_sample(text,    k, list)
{
	time[++rows] = number(text, "time_s")
	for (k = 1; k <= nr_counters; k++)
		value[rows, k] = number(text, json[k])
	match(text, /"node_pages":\[[0-9,]*\]/)
	nodes = split(substr(text, RSTART + 14, RLENGTH - 15), list, ",")
	for (k = 1; k <= nodes; k++)
		value[rows, nr_counters + k] = list[k]
}

side == "sim" {
	if (!match($0, /"series":\[/))
		next
	text = substr($0, RSTART + RLENGTH)
	while (match(text, /\{[^}]*\}/)) {
		read_sample(substr(text, RSTART, RLENGTH))
		text = substr(text, RSTART + RLENGTH)
	}
	write_out(++runs)
	next
}

# ---- the lab ----

FNR == 1 {
	if (runs++)
		write_out(runs - 1)
	delete column
	for (i = 1; i <= NF; i++)
		column[$i] = i
	next
}
{
	time[++rows] = $(column["t"])
	for (k = 1; k <= nr_counters; k++)
		value[rows, k] = $(column[counter[k]])
	for (nodes = 0; ("p0_N" nodes) in column; nodes++)
		for (p = 0; ("p" p "_N" nodes) in column; p++)
			value[rows, nr_counters + nodes + 1] += $(column["p" p "_N" nodes])
}
END {
	if (side == "lab" && rows)
		write_out(runs)
}
