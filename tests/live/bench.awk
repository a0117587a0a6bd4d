# SPDX-License-Identifier: MIT
# The report of bench: reads "part,thp,run,cpu,side,name,value". Exit status 1 where a bound does not hold, or is not shown to.

function mean_over(part, thp, side, name)
{
	return many[part, thp, side, name] ? sum[part, thp, side, name] / many[part, thp, side, name] : 0
}

# Sorts v[1..n].
function sort(v, n,	i, j, x)
{
	for (i = 2; i <= n; i++) {
		x = v[i]
		for (j = i - 1; j > 0 && v[j] > x; j--)
			v[j + 1] = v[j]
		v[j + 1] = x
	}
}

function median(v, n)
{
	return n % 2 ? v[(n + 1) / 2] : (v[n / 2] + v[n / 2 + 1]) / 2
}

function verdict(holds, text)
{
	if (!holds)
		failed = 1
	printf "  %s: %s\n", holds ? "holds" : "DOES NOT HOLD", text
}

# Ratio of pair `run` by a measure of speed, in percent: the geometric mean of its halves'. Their product is the same whether those of one time
# or those of one CPU are divided. 0: not measured
function pair(with, without, thp, run,	cpu, n, log_sum, other)
{
	for (cpu in cpus) {
		other = without[thp, run, cpu]
		if (!((thp, run, cpu) in with) || other <= 0 || late[thp, run, cpu] > 100)
			return 0
		log_sum += log(with[thp, run, cpu] / other)
		n++
	}
	return n ? 100 * exp(log_sum / n) : 0
}

function speed(thp,	run, n, v, c, line, m)
{
	for (run = 1; run <= runs[thp]; run++)
		if ((m = pair(with, without, thp, run)) > 0) {
			v[++n] = m
			line = line sprintf(" %.2f", m)
			c[n] = pair(cpu_with, cpu_without, thp, run)
		}
	if (!runs[thp])
		return
	printf "\nSpeed with numabal, THP %s, 256 MiB, %s, %% of that without\n", thp, pattern
	if (n < runs[thp])
		printf "  %d pairs left out: a program began more than 0.1 s late\n", runs[thp] - n
	if (!n) {
		verdict(0, "nothing was measured")
		return
	}
	sort(v, n)
	m = median(v, n)
	printf "  each pair:%s\n  median %.2f %% of %d pairs, lowest %.2f, highest %.2f\n", line, m, n, v[1], v[n]
	sort(c, n)
	printf "  for each second of CPU time that the processes got: median %.2f %%, lowest %.2f, highest %.2f\n", median(c, n), c[1], c[n]
	printf "  MiB/s, mean: %.0f with, %.0f without; numabal's threads %.3f %% of a CPU\n",
		mean_over("speed", thp, "with", "mib_s"), mean_over("speed", thp, "without", "mib_s"),
		100 * mean_over("speed", thp, "with", "helpers")
	printf "  while measured, each run: %.0f pages armed, %.0f faults\n",
		mean_over("speed", thp, "with", "armed") - mean_over("speed", thp, "with", "armed_before"),
		mean_over("speed", thp, "with", "faults") - mean_over("speed", thp, "with", "faults_before")
	printf "  in huge pages when it began and at the end: %.1f and %.1f %% with, %.1f and %.1f %% without\n",
		mean_over("speed", thp, "with", "huge_before"), mean_over("speed", thp, "with", "huge_after"),
		mean_over("speed", thp, "without", "huge_before"), mean_over("speed", thp, "without", "huge_after")
	if (m < 99 && v[n] >= 99) {
		failed = 1
		print "  NOT SHOWN: the median is under 99 %, and pairs lie on both sides of it: more pairs (--runs) may tell"
		return
	}
	verdict(m >= 99, "the median pair is at 99 % or more")
}

function agent(thp,	share)
{
	if (!(("agent", thp, "with", "helpers") in many))
		return
	share = 100 * mean_over("agent", thp, "with", "helpers")
	printf "\nnumabal's threads, THP %s, 1 GiB, a thread on each of 2 CPUs\n", thp
	printf "  %.3f %% of a CPU once settled; %.3f s of CPU before that\n", share, mean_over("agent", thp, "with", "helpers_before_s")
	verdict(share < 1 && mean_over("agent", thp, "with", "late_ms") < 1000, "under 1 % of a CPU")
	histogram("agent", thp, "with", "  a fault's service in numabal, from reading it to waking who waits:")
}

function histogram(part, thp, side, title,	below, said)
{
	for (below = 1; below < 2 ^ 40; below *= 2)
		if ((part, thp, side, "below_" below) in sum) {
			if (!said++)
				print title
			printf "    under %10.3f us: %d\n", below / 1000, sum[part, thp, side, "below_" below]
		}
}

# How far the turns with numabal have more gaps than those without, in standard deviations of the rank sum where sides
# do not matter.
function rank_sum(	i, j, lower, same, r, n, m, mean, ties, sd)
{
	for (i = 1; i <= turns; i++) {
		n += turn_with[i]
		for (j = 1; j <= turns; j++)
			if (turn_with[i] && !turn_with[j])
				r += turn_gaps[i] > turn_gaps[j] ? 1 : turn_gaps[i] == turn_gaps[j] ? 0.5 : 0
	}
	m = turns - n
	for (i = 1; i <= turns; i++)
		for (j = 1; j <= turns; j++)
			if (i != j && turn_gaps[i] == turn_gaps[j])
				same++
	# sum of t^3 - t over ties of t: of each member t^2 - 1 = (t - 1)(t + 1)
	for (i = 1; i <= turns; i++) {
		lower = 0
		for (j = 1; j <= turns; j++)
			lower += turn_gaps[i] == turn_gaps[j]
		ties += lower * lower - 1
	}
	mean = n * m / 2
	sd = sqrt(n * m / 12 * (turns + 1 - ties / (turns * (turns - 1))))
	return sd > 0 ? (r - mean) / sd : 0
}

function pause_line(side,	s)
{
	s = seen[side]
	printf "  %-8s %5.1f s: %7.1f over 1 ms, %8.1f over 100 us a minute; longest %.2f ms; switched out %.1f times a minute, in %d of %d gaps over 1 ms\n",
		side, s, 60 * gap[side, "over_1ms"] / s, 60 * gap[side, "over_100us"] / s, longest[side] / 1000,
		60 * gap[side, "involuntary"] / s, gap[side, "switched"], gap[side, "over_1ms"]
}

function pauses(	z)
{
	if (!turns || !seen["with"] || !seen["without"])
		return
	print "\nGaps in a thread that touches no memory, beside one that sweeps 256 MiB; the machine's own are those without numabal"
	pause_line("with")
	pause_line("without")
	printf "  %d pages armed, %d faults meanwhile\n", armed, faults
	z = rank_sum()
	verdict(z < 2.33, sprintf("turns with numabal have no more gaps over 1 ms, beyond chance (rank sum of %d turns: %.2f standard deviations; 2.33 is 1 in 100)", turns, z))
}

function fault_line(side, text,	k)
{
	for (k in thps)
		if (sum["faults", k, side, "n"] > 0) {
			printf "  %-58s %9.2f us  99 %%: %9.2f us  longest: %9.2f us  of %d\n", text,
				sum["faults", k, side, "p50_ns"] / 1000, sum["faults", k, side, "p99_ns"] / 1000,
				sum["faults", k, side, "max_ns"] / 1000, sum["faults", k, side, "n"]
			return sum["faults", k, side, "p50_ns"]
		}
	return 0
}

function touches(	mapped, kernel, hint, ours, k)
{
	for (k in thps)
		if (("faults", k, "mapped", "n") in sum)
			mapped = 1
	if (!mapped)
		return
	print "\nA touch, as the thread sees it: median"
	mapped = fault_line("mapped", "a mapped page")
	kernel = fault_line("dropped", "the kernel's minor fault: shared memfd, entry dropped")
	hint = fault_line("hinted", "the kernel's hint fault: kernel.numa_balancing=1")
	ours = fault_line("numabal", "numabal's fault, 2 threads on 2 CPUs")
	if (!hint)
		print "  the kernel's hint fault: not measured: " (nodes > 1 ? "none came, or kernel.numa_balancing cannot be written" : "it needs two nodes; docs/lab.md, Calibration, says how the lab measures it")
	if (ours && kernel)
		printf "  numabal's fault is %.1f of the kernel's minor faults%s\n", ours / kernel, hint ? sprintf(", %.1f of its hint faults", ours / hint) : ""
	for (k in thps)
		histogram("faults", k, "numabal", "  numabal's faults, from touch to going on:")
}

BEGIN { FS = "," }
NR == 1 { next }
{
	thps[$2]
	if (!($2 in runs))
		order[++nr_modes] = $2
	runs[$2] += 0
	sum[$1, $2, $5, $6] += $7
	many[$1, $2, $5, $6]++
}
$1 == "speed" && $3 > runs[$2] { runs[$2] = $3 }
$1 == "speed" { cpus[$4] }
$6 == "late_ms" && $1 == "speed" && $7 > late[$2, $3, $4] { late[$2, $3, $4] = $7 }
$6 == "mib_s" && $1 == "speed" && $5 == "with" { with[$2, $3, $4] = $7 }
$6 == "mib_s" && $1 == "speed" && $5 == "without" { without[$2, $3, $4] = $7 }
# Its own threads' time is part of what a process got: only what other programs took is left out.
$6 == "cpu" && $1 == "speed" && $7 > 0 {
	if ($5 == "with")
		cpu_with[$2, $3, $4] = with[$2, $3, $4] / $7
	else
		cpu_without[$2, $3, $4] = without[$2, $3, $4] / $7
}
$1 == "pauses" && $3 == "all" { if ($6 == "armed") armed += $7; if ($6 == "faults") faults += $7 }
$1 == "pauses" && $3 != "all" && $6 != "wrong" {
	if ($6 == "seconds")
		seen[$5] += $7
	if ($6 == "longest_us" && $7 > longest[$5])
		longest[$5] = $7
	gap[$5, $6] += $7
	if ($6 == "over_1ms") {
		turn_with[++turns] = $5 == "with"
		turn_gaps[turns] = $7
	}
}
END {
	for (i = 1; i <= nr_modes; i++)
		speed(order[i])
	for (i = 1; i <= nr_modes; i++)
		agent(order[i])
	pauses()
	touches()
	exit failed
}
