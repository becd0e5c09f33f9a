#!/bin/sh
# Builds the programs for the images, in a container (Containerfile) or on a machine (dev/images.mjs). They need no
# library and contain no path of this machine, so the same source gives the same bytes everywhere.
#
#   programs.sh compiler ARCH              a compiler for another architecture; needs root and apt-get
#   programs.sh web-server ARCH FOLDER     static-web-server, for the web app's image
#   programs.sh services ARCH FOLDER       auth-edge, session-svc and vestibule
#   programs.sh licences ARCH FOLDER       crates of all with their licences; the two above write FOLDER/licences
#   programs.sh authorities FOLDER         ca-certificates.crt: Mozilla's authorities, no others of this machine
#
# ARCH is amd64 or arm64; empty, this machine's. cargo works in CARGO_TARGET_DIR. CARGO_PROFILE=dev compiles in a
# third of the time, for tests.
set -eu

WEB_SERVER=2.44.1
WEB_SERVER_FEATURES=fallback-page,compression-gzip,compression-brotli
source=$(cd "$(dirname "$0")/../.." && pwd)

architecture() { # in the form of uname -m
  case "$1" in
    amd64 | x86_64) echo x86_64 ;;
    arm64 | aarch64) echo aarch64 ;;
    *)
      echo "programs.sh: no images for $1, only for amd64 and arm64" >&2
      exit 2
      ;;
  esac
}

profile=${CARGO_PROFILE:-release}
made=$([ "$profile" = dev ] && echo debug || echo "$profile")
own=$(architecture "$(uname -m)")
target_dir=$(realpath -m "${CARGO_TARGET_DIR:-$source/target}")
cargo_home=$(realpath -m "${CARGO_HOME:-$HOME/.cargo}")

# sets the variables of cargo for architecture $1
compile_for() {
  unset RUSTC_WORKSPACE_WRAPPER # .ci/run checks what the tests run, not this
  target=$1-unknown-linux-gnu
  linker=$([ "$1" = "$own" ] && echo cc || echo "$1-linux-gnu-gcc")
  if ! command -v "$linker" > /dev/null; then
    echo "programs.sh: $1 needs $linker (Debian: apt-get install gcc-$(echo "$1" | tr _ -)-linux-gnu libc6-dev)" >&2
    exit 1
  fi
  # downloads nothing if rustup or the distribution has installed the standard library
  [ -d "$(rustc --print sysroot)/lib/rustlib/$target/lib" ] || rustup target add "$target"
  # The linker of this machine is cargo's default: naming it would make cargo build every procedural macro again.
  [ "$1" = "$own" ] || export "CARGO_TARGET_$(echo "$target" | tr a-z- A-Z_)_LINKER=$linker" "CC_$(echo "$target" | tr - _)=$linker"
  export RUSTFLAGS="-C target-feature=+crt-static --remap-path-prefix=$source=/source --remap-path-prefix=$target_dir=/target --remap-path-prefix=$cargo_home=/cargo"
  export SOURCE_DATE_EPOCH=0 # a C compiler can write the time into a program (gcc, "Environment Variables")
  export CFLAGS="-ffile-prefix-map=$target_dir=/target -ffile-prefix-map=$cargo_home=/cargo"
}

# makes folder $1 and copies programs to it
deliver() {
  folder=$1
  shift
  mkdir -p "$folder"
  install -m 0755 "$@" "$folder"
}

# the folder of a crate's source, name-version $1, as cargo has downloaded it
downloaded() {
  for found in "$cargo_home"/registry/src/*/"$1"; do
    [ -d "$found" ] && echo "$found" && return
  done
  echo "programs.sh: $1 was not downloaded yet: build it first" >&2
  exit 1
}

# lists the crates of `cargo tree` with the arguments and their licences, then each licence text with its crates;
# leaves out crates of this workspace
notices() {
  work=$(mktemp -d)
  cargo tree --quiet --locked --edges normal --prefix none --no-dedupe --format '{p}: {l}' "$@" | sed 's/ (proc-macro)//' | grep -v -e '^$' -e '^:' -e ' (/' | LC_ALL=C sort -u > "$work/crates"
  mkdir "$work/texts"
  while IFS=: read -r package licence; do
    echo "$package:$licence"
    from=$(downloaded "$(echo "$package" | sed 's/ v/-/')")
    for text in "$from"/LICEN[CS]E* "$from"/license* "$from"/COPYING* "$from"/COPYRIGHT* "$from"/NOTICE* "$from"/UNLICENSE* "$from"/third_party/*/LICENSE*; do
      [ -f "$text" ] || continue
      tr -d '\r' < "$text" > "$work/text"
      name=$work/texts/$(sha256sum < "$work/text" | cut -c 1-64)
      mv "$work/text" "$name"
      printf '%s\n' "$package" >> "$name.of"
    done
  done < "$work/crates"
  for text in "$work"/texts/*.of; do
    printf '\n================================================================\n'
    cat "$text" && echo && cat "${text%.of}"
  done
  rm -r "$work"
}

services_licences() { # into folder $1
  mkdir -p "$1"
  cd "$source"
  install -m 0644 LICENSE "$1/vestibule.txt"
  notices --target "$target" -p auth-edge -p session-svc -p vestibule > "$1/services.txt"
}

web_server_licences() { # into folder $1
  mkdir -p "$1"
  cd "$(downloaded "static-web-server-$WEB_SERVER")"
  { echo "static-web-server v$WEB_SERVER: MIT OR Apache-2.0" && cat LICENSE-APACHE && notices --target "$target" --no-default-features --features "$WEB_SERVER_FEATURES"; } > "$1/static-web-server.txt"
}

case "${1:-}" in
  compiler)
    wanted=$(architecture "${2:-$own}")
    if [ "$wanted" != "$own" ]; then
      foreign=$([ "$wanted" = aarch64 ] && echo arm64 || echo amd64)
      apt-get update -q
      apt-get install -q -y --no-install-recommends "gcc-$(echo "$wanted" | tr _ -)-linux-gnu" "libc6-dev-$foreign-cross"
    fi
    ;;
  web-server)
    compile_for "$(architecture "${2:-$own}")"
    tools=$target_dir/tools/static-web-server-$WEB_SERVER-$made
    CARGO_TARGET_DIR=$tools cargo install --quiet --locked --profile "$profile" --root "$tools/$target" --target "$target" --version "$WEB_SERVER" \
      --no-default-features --features "$WEB_SERVER_FEATURES" static-web-server
    deliver "$3" "$tools/$target/bin/static-web-server"
    web_server_licences "$3/licences"
    ;;
  services)
    compile_for "$(architecture "${2:-$own}")"
    cd "$source"
    build() { cargo build --quiet --locked --target "$target" --profile "$@"; }
    if [ "$profile" = release ]; then
      build release -p auth-edge -p session-svc
      build small -p vestibule
      small=small
    else
      build "$profile" -p auth-edge -p session-svc -p vestibule
      small=$made
    fi
    deliver "$3" "$target_dir/$target/$made/auth-edge" "$target_dir/$target/$made/session-svc" "$target_dir/$target/$small/vestibule"
    services_licences "$3/licences"
    ;;
  licences)
    target=$(architecture "${2:-$own}")-unknown-linux-gnu
    services_licences "$3"
    web_server_licences "$3"
    ;;
  authorities)
    set -- "$2" /usr/share/ca-certificates/mozilla/*.crt
    if [ ! -e "$2" ]; then
      echo "programs.sh: no authorities in /usr/share/ca-certificates (Debian: apt-get install ca-certificates)" >&2
      exit 1
    fi
    mkdir -p "$1"
    folder=$1
    shift
    cat "$@" > "$folder/ca-certificates.crt"
    ;;
  *)
    sed -n '2,13s/^# \{0,1\}//p' "$0"
    exit 2
    ;;
esac
