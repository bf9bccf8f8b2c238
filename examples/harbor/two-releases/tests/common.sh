# Both steps ask the same of a release: VERSION $1, and what was unreleased under its own heading.
check_release() {
    [ "$(cat VERSION 2>/dev/null)" = "$1" ] || { echo "VERSION is not $1"; return 1; }
    [ "$(sed -n 3p CHANGELOG.md)" = "## Unreleased" ] || { echo "no empty Unreleased on top"; return 1; }
    awk -v h="## $1" -v want="$2" '
        $0 == "## Unreleased" { top = 1; next }
        /^## / { inside = ($0 == h); if (inside) seen = 1; top = 0; next }
        top && /^- / { print "still unreleased: " $0; bad = 1 }
        inside && $0 == "- " want { found = 1 }
        END { if (!seen) print "no heading " h; if (!found) print "not under it: " want; exit bad || !seen || !found }
    ' CHANGELOG.md
}
