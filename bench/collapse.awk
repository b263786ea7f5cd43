# Folded stacks from `perf script -F comm,period,ip,sym`: a line for each sample with its command and
# period, one per frame from the innermost on, and an empty line. What stackcollapse-perf.pl does,
# in the quickest language for it.
/^$/ {
    if (comm != "") sums[comm stack] += period
    comm = stack = ""
    next
}
comm == "" {
    period = $NF
    comm = $1
    for (i = 2; i < NF; i++) comm = comm " " $i
    sub(/:$/, "", period)
    next
}
{
    sub(/^[ \t]*[0-9a-f]+ /, "")
    gsub(/;/, ":")
    stack = ";" $0 stack
}
END {
    if (comm != "") sums[comm stack] += period
    for (key in sums) printf "%s %.0f\n", key, sums[key]
}
