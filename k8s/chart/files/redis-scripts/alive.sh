# Whether the server of this pod answers over TLS. Any answer counts, such as LOADING while it reads its file. A probe
# that only connects would make the server log a failed handshake each time.
. "${0%/*}/common.sh"
[ -n "$(ask "localhost:$(port "$SELF")" probe probe ping)" ]
