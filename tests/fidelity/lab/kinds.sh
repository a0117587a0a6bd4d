# SPDX-License-Identifier: MIT
# shellcheck shell=sh disable=SC2154
# What the scripts here share; read with '.'; wants $here.

# Kinds of runs, a line each: MACHINE WORKLOAD on|off SECONDS. kinds PATTERN: of the shell's, on their names.
kinds()
{
	while IFS=, read -r machine workload thp length; do
		case $machine in '#'* | machine) continue ;; esac
		# shellcheck disable=SC2254 # a pattern, on purpose
		case ${machine}_${workload}_thp$thp in $1) echo "$machine $workload $thp $length" ;; esac
	done <"$here/kinds.csv"
}

# The files of a kind's runs: runs_of NAME DIR...
runs_of()
{
	name=$1
	shift
	for dir; do
		for file in "$dir/$name"*.csv "$dir/t$name"*.csv; do
			base=${file##*/}
			case ${base#t} in
			"$name.csv" | "$name"_[0-9].csv | "$name"_[0-9][0-9].csv | "$name"_m1.csv | "$name"_m1_[0-9].csv)
				[ ! -f "$file" ] || echo "$file"
				;;
			esac
		done
	done
}
