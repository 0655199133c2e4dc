#!/bin/sh
# setup.sh KIND...: installs the Debian packages of these kinds (cmake/packages.txt) that are
# missing: as root, or by sudo. Where neither goes, or on another system, it says what is needed
# and goes on if there is a compiler and a CMake to go on with.
set -eu
cd "$(dirname "$0")/.."
say() { printf 'setup: %s\n' "$*"; }

wanted=
for kind in "$@"; do
  wanted="$wanted $(sed -n "s/^$kind //p" cmake/packages.txt | tr '\n' ' ')"
done

go_on_or_stop() {
  if command -v cmake >/dev/null && { command -v c++ || command -v g++; } >/dev/null; then
    say "going on with what is there; cmake will say what it misses."
    exit 0
  fi
  say "no C++ compiler or no cmake on PATH: cannot go on."
  exit 1
}
explain() {
  cat <<END
setup: without root, any of these will do:
  modules      module load gcc/12 cmake tbb      (names differ between sites: module avail)
  conda        conda create -n stripepack -c conda-forge cxx-compiler cmake ninja pkg-config \\
                 tbb-devel cli11 xxhash libjpeg-turbo libpng libwebp libtiff giflib lcms2 openssl \\
                 pybind11 python numpy pillow gtest
  leaving out  every library but TBB and CLI11 is optional: what cmake does not find, it switches
               off with a message; make -f Makefile.dist build CMAKE_ARGS="-DSPK_WITH_TIFF=OFF ..."
               does so by hand, and -DSPK_BUILD_TOOLS=OFF builds the reader library alone.
END
}

if ! command -v dpkg-query >/dev/null || ! command -v apt-get >/dev/null; then
  say "this is not a Debian system. Needed are, by their Debian names:"
  printf '%s\n' "$wanted" | fold -s -w 90 | sed 's/^ */  /'
  explain
  go_on_or_stop
fi

# One line a package that is installed, its name first (without the architecture).
installed=$(dpkg-query -W -f='${db:Status-Status} ${Package}\n' 2>/dev/null | sed -n 's/^installed //p')
missing=
for package in $wanted; do
  case "
$installed
" in
    *"
$package
"*) ;;
    *) case " $missing " in *" $package "*) ;; *) missing="$missing $package" ;; esac ;;
  esac
done
if [ -z "$missing" ]; then
  say "all $(printf '%s\n' $wanted | sort -u | wc -l) Debian packages are installed."
  exit 0
fi

say "missing, to be installed by apt-get:"
printf '%s\n' "$missing" | fold -s -w 90 | sed 's/^ */  /'
as_root=
if [ "$(id -u)" != 0 ]; then
  if ! command -v sudo >/dev/null; then
    say "you are not root and there is no sudo."
    explain
    go_on_or_stop
  fi
  say "you are not root: sudo may ask for your password (Ctrl-C leaves the system as it is)."
  explain
  as_root="sudo"
  [ -t 0 ] || as_root="sudo -n"
fi
if $as_root apt-get update -qq && $as_root env DEBIAN_FRONTEND=noninteractive \
     apt-get install -y -qq --no-install-recommends -o Dpkg::Use-Pty=0 $missing; then
  mkdir -p build
  : > build/.packages-installed  # newer than a configured build: configure again
  say "done."
else
  say "apt-get failed."
  explain
  go_on_or_stop
fi
