"""Tables of bars, k-means and scale, as Markdown that the documentation includes."""

from typing import Any

# Throughput wanted of predict, and time wanted of a stage, both against bare calls.
THROUGHPUT = {"DomainMixture": 0.8, "DDFA": 0.9}
STAGE_RATIO = 1.2


def bars_page(record: dict[str, Any]) -> str:
    """Each bar with what was measured before and now, then the hot spots."""
    now, before = record["now"], record.get("before", {})
    lines = [
        "| 1,000,000 x 30 rows, 30 domains, 10 classes | bare | ours | throughput "
        "against bare, before | now | wanted |",
        "|---|---|---|---|---|---|",
    ]
    for name, found in now.get("predict", {}).items():
        wanted = THROUGHPUT[name.partition(".")[0]]
        old = before.get("predict", {}).get(name)
        lines.append(
            f"| {name} | {found['bare_seconds']:.2f} s | {found['ours_seconds']:.2f} s "
            f"| {'' if old is None else format(old['throughput'], '.2f')} "
            f"| {found['throughput']:.2f} | {wanted} |"
        )
    lines += ["", "| stage | bare | ours | time against bare, before | now | wanted |"]
    lines += ["|---|---|---|---|---|---|"]
    for name, found in now.get("stages", {}).items():
        old = before.get("stages", {}).get(name)
        lines.append(
            f"| {name} | {found['bare_seconds']:.3f} s | {found['ours_seconds']:.3f} s "
            f"| {'' if old is None else format(old['ratio'], '.2f')} "
            f"| {found['ratio']:.2f} | {STAGE_RATIO} |"
        )
    return "\n".join([*lines, "", *hot_spot_table(before, now)])


def hot_spot_table(before: dict, now: dict) -> list[str]:
    """Return the three functions with the most time of their own, before and now."""
    lines = ["| under the profiler | before | now | ratio |", "|---|---|---|---|"]
    for name, found in now.get("profile", {}).items():
        old = before.get("profile", {}).get(name)
        ratio = "" if old is None else f"{found['seconds'] / old['seconds']:.2f}"
        earlier = "" if old is None else spots(old)
        lines.append(f"| {name} | {earlier} | {spots(found)} | {ratio} |")
    return lines


def spots(found: dict) -> str:
    """Seconds in all, then each hot spot with its seconds and its share."""
    shares = ", ".join(
        f"`{spot['spot'].removeprefix('~.')}` {spot['seconds']:.2f} s, "
        f"{spot['share']:.0%}"
        for spot in found["largest"]
    )
    return f"{found['seconds']:.2f} s: {shares}"


def kmeans_page(record: dict[str, Any]) -> str:
    """Each way of finding centres against all rows."""
    lines = [
        "| clusters | centres from | time | faster | accuracy | accuracy lost, mean "
        "(most) | prevalence error |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in record["summary"]:
        sizes = "" if row["sizes"] == "equal" else f" ({row['sizes']} domains)"
        lines.append(
            f"| {row['clusters']}{sizes} | {row['way']} ({row['seeds']} seeds) "
            f"| {row['seconds']:.1f} s | {row['faster']:.1f} x | {row['accuracy']:.4f} "
            f"| {row['accuracy_lost']:.4f} ({row['most_lost']:.4f}) "
            f"| {row['prevalence_error']:.4f} |"
        )
    return "\n".join(lines)


def scale_page(record: dict[str, Any]) -> str:
    """Each size fitted and classed in parts, then how memory grows."""
    lines = [
        "| rows | fit | predict | peak memory, all processes | accuracy | of the best "
        "possible | prevalence error, all rows | sample alone | passes moved |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for rows, found in sorted(record["sizes"].items(), key=lambda one: int(one[0])):
        truth = found["truth"]
        errors = [
            decimals(truth[which]["prevalence_error_mean"], 4)
            for which in ("all rows", "sample alone")
        ]
        moved = ", ".join(decimals(move, 5) for move in found["scale"]["moved"])
        lines.append(
            f"| {int(rows):,} | {found['fit_seconds']:.0f} s "
            f"| {found['predict_seconds']:.0f} s | {found['peak_gib']:.2f} GiB "
            f"| {decimals(truth['accuracy_all_rows'], 3)} "
            f"| {decimals(truth['best accuracy'], 3)} | {' | '.join(errors)} "
            f"| {moved} |"
        )
    memory, ddfa = record["memory"], record["DDFA"]
    return "\n".join(
        [
            *lines,
            "",
            f"Memory grows by {memory['gib_per_million_rows']:.4f} GiB for a million "
            f"rows (log-log slope {decimals(memory['log_slope'], 3)}). "
            f"{record['estimators']}. `DDFA`, its table counted over the same "
            f"{ddfa['rows']:,} rows, took {ddfa['fit_seconds']:.0f} s to fit and "
            f"{ddfa['peak_gib']:.2f} GiB. Version: {versions(record)}.",
        ]
    )


def versions(record: dict[str, Any]) -> str:
    """Commits that were measured, each once."""
    runs = [*record["sizes"].values(), record["DDFA"]]
    return ", ".join(dict.fromkeys(f"`{run['commit']}`" for run in runs))


def decimals(value: float, digits: int) -> str:
    """A number below 1 without its leading zero."""
    return f"{value:.{digits}f}".replace("0.", ".", 1)
