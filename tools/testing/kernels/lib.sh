# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# lib.sh - fetching and building the kernels that mrsoft is tested on
#
# Each artifact is a directory $MRSOFT_CACHE/kernels/NAME-VERSION[-CONFIGHASH]
# that is complete when it holds the file .done; $MRSOFT_CACHE/NAME is a
# symbolic link to the current one.  An interrupted build leaves no .done and
# no link, and goes on where it stopped.
#
# Nothing is looked up on the network while the artifact is in the cache:
# MRSOFT_REFRESH=1 asks for newer versions.

UML_DIR=$TESTING/kernels

# --- apt -------------------------------------------------------------------

# The mirror is the one that the system itself uses for Debian's main archive.
debian_uri()
{
	local codename
	# shellcheck disable=SC1091
	codename=$(. /etc/os-release && echo "$VERSION_CODENAME")
	apt-get indextargets --format '$(REPO_URI)|$(RELEASE)|$(COMPONENT)' \
		'Created-By: Packages' |
		awk -F'|' -v c="$codename" '$2 == c && $3 == "main" { print $1; exit }'
}

# Backports have a source list, a list folder and a cache of their own, so that
# the system's package choice is not touched.
apt_own()
{
	local tool=$1 apt=$MRSOFT_CACHE/apt
	shift
	"$tool" -o Dir::Etc::sourcelist="$apt/sources.list" \
		-o Dir::Etc::sourceparts=/dev/null \
		-o Dir::State::Lists="$apt/lists" -o Dir::Cache="$apt/cache" \
		-o APT::Sandbox::User=root -qq "$@"
}

apt_own_update()
{
	local apt=$MRSOFT_CACHE/apt uri key suite
	local stamp=$apt/updated

	[ -z "$(find "$stamp" -mmin -240 2>/dev/null)" ] || return 0
	uri=$(debian_uri)
	[ -n "$uri" ] || die "no Debian main archive in the apt sources"
	key=/usr/share/keyrings/debian-archive-keyring.gpg
	mkdir -p "$apt/lists/partial" "$apt/cache/archives/partial"
	# shellcheck disable=SC1091
	. /etc/os-release
	{
		for suite in "$VERSION_CODENAME" "$VERSION_CODENAME-updates" \
			"$VERSION_CODENAME-backports" trixie-backports; do
			echo "deb [signed-by=$key] $uri $suite main"
		done
		apt-get indextargets --format \
			'deb [signed-by='"$key"'] $(REPO_URI) $(RELEASE) main' \
			'Created-By: Packages' |
			grep -F "$VERSION_CODENAME-security " | sort -u
	} >"$apt/sources.list"
	apt_own apt-get update || die "apt-get update for backports failed"
	touch "$stamp"
}

# newest REGEX - the newest package whose name matches.
newest()
{
	apt_own apt-cache search --names-only "$1" | cut -d' ' -f1 | sort -V | tail -n 1
}

deb_version()
{
	apt_own apt-cache policy "$1" | awk '/Candidate:/ { print $2 }'
}

# fetch_debs DIR PACKAGE... - download and unpack below DIR.
fetch_debs()
{
	local dir=$1 tmp deb
	shift
	tmp=$(mktemp -d "$MRSOFT_CACHE/debs.XXXXXX")
	(cd "$tmp" && apt_own apt-get download "$@") || die "cannot fetch $*"
	for deb in "$tmp"/*.deb; do
		dpkg-deb -x "$deb" "$dir" || die "cannot unpack ${deb##*/}"
	done
	rm -rf "$tmp"
}

# --- the cache -------------------------------------------------------------

# current NAME [HASH] - is NAME complete and made from this configuration?
current()
{
	local link=$MRSOFT_CACHE/$1 hash=${2:-}

	[ -z "${MRSOFT_REFRESH:-}" ] || return 1
	[ -e "$link/.done" ] || return 1
	[ -z "$hash" ] || [ "$(cat "$link/.done")" = "$hash" ]
}

# publish NAME DIR [HASH]
publish()
{
	echo "${3:-}" >"$2/.done"
	ln -sfn "kernels/${2##*/}" "$MRSOFT_CACHE/$1.tmp$$"
	mv -T "$MRSOFT_CACHE/$1.tmp$$" "$MRSOFT_CACHE/$1"
}

frag_hash()
{
	cat "$@" | grep '^CONFIG' | sha256sum | cut -c1-12
}

# Debian's packages name /usr/src in one place: the header Makefile.
unpack_headers()
{
	local name=$1 abi=$2 kbuild=$3 ver dir
	ver=$(deb_version "linux-headers-$abi")
	dir=$MRSOFT_CACHE/kernels/$name-$ver
	if [ ! -e "$dir/.done" ]; then
		rm -rf "$dir"
		mkdir -p "$dir"
		fetch_debs "$dir" "linux-headers-$abi" \
			"linux-headers-${abi%-amd64}-common" "$kbuild"
		sed -i "s#^include /usr/src/#include $dir/usr/src/#" \
			"$dir/usr/src/linux-headers-$abi/Makefile"
		echo "$abi" >"$dir/release"
	fi
	echo >"$dir/.done"
	ln -sfn "$(basename "$dir")/usr/src/linux-headers-$abi" \
		"$MRSOFT_CACHE/kernels/$name"
	echo >"$dir/usr/src/linux-headers-$abi/.done"
	ln -sfn "kernels/$name" "$MRSOFT_CACHE/$name"
}

make_kdir_6_1()
{
	apt_own_update
	unpack_headers kdir-6.1 "$(newest '^linux-headers-6\.1\.0-[0-9]+-amd64$' |
		sed 's/^linux-headers-//')" linux-kbuild-6.1
}

abi_6_12()
{
	newest '^linux-headers-6\.12\.[0-9.]+\+deb12(\.[0-9]+)?-amd64$' |
		sed 's/^linux-headers-//'
}

make_kdir_6_12()
{
	local abi
	apt_own_update
	abi=$(abi_6_12)
	unpack_headers kdir-6.12 "$abi" "linux-kbuild-${abi%-amd64}"
}

abi_7_3()
{
	newest '^linux-headers-7\.3\.[0-9.]+\+deb13(\.[0-9]+)?-amd64$' |
		sed 's/^linux-headers-//'
}

# Debian's 7.3 headers hold programs for a newer C library; so take their
# configuration and symbol list, and prepare the source with our compiler.
make_kdir_7_3()
{
	local abi ver dir src tmp
	src=$(get_kernel src-7.3) || return 1
	apt_own_update
	abi=$(abi_7_3)
	ver=$(deb_version "linux-headers-$abi")
	dir=$MRSOFT_CACHE/kernels/kdir-7.3-$ver
	tmp=$(mktemp -d "$MRSOFT_CACHE/unpack.XXXXXX")
	fetch_debs "$tmp" "linux-headers-$abi"
	mkdir -p "$dir"
	cp "$tmp/usr/src/linux-headers-$abi/.config" "$dir/.config"
	"$src/scripts/config" --file "$dir/.config" \
		--set-str SYSTEM_TRUSTED_KEYS "" --set-str MODULE_SIG_KEY "" \
		-d MODULE_SIG_ALL -d RUST
	# the release string must be Debian's: it is part of each module
	"$src/scripts/config" --file "$dir/.config" --set-str LOCALVERSION \
		"${abi#"$(make -s -C "$src" kernelversion)"}" -d LOCALVERSION_AUTO
	quietly "$dir/build.log" make -C "$src" O="$dir" olddefconfig || return 1
	quietly "$dir/build.log" nice make -C "$src" O="$dir" -j"$JOBS" \
		modules_prepare || return 1
	cp "$tmp/usr/src/linux-headers-$abi/Module.symvers" "$dir/"
	rm -rf "$tmp"
	publish kdir-7.3 "$dir"
}

make_src_7_3()
{
	local ver dir tmp
	apt_own_update
	ver=$(deb_version linux-source-7.3)
	dir=$MRSOFT_CACHE/kernels/src-7.3-$ver
	if [ ! -e "$dir/.done" ]; then
		rm -rf "$dir"
		mkdir -p "$dir"
		tmp=$(mktemp -d "$MRSOFT_CACHE/unpack.XXXXXX")
		fetch_debs "$tmp" linux-source-7.3
		tar -xJf "$tmp/usr/src/linux-source-7.3.tar.xz" -C "$dir" \
			--strip-components=1 || return 1
		rm -rf "$tmp"
	fi
	publish src-7.3 "$dir" "$ver"
}

# image ABI - vmlinuz and modules, as the distribution made them
unpack_image()
{
	local name=$1 ver dir
	shift
	ver=$(deb_version "$1")
	dir=$MRSOFT_CACHE/kernels/$name-$ver
	if [ ! -e "$dir/.done" ]; then
		rm -rf "$dir"
		mkdir -p "$dir"
		fetch_debs "$dir" "$@"
		# merged /usr: newer packages have usr/lib/modules
		[ -e "$dir/lib/modules" ] || ln -s usr/lib "$dir/lib"
		basename "$dir"/lib/modules/* >"$dir/release"
		depmod -b "$dir" "$(cat "$dir/release")" || return 1
	fi
	publish "$name" "$dir"
}

make_image_6_1()
{
	apt_own_update
	unpack_image image-6.1 "$(newest '^linux-image-6\.1\.0-[0-9]+-amd64$')"
}

make_image_6_12()
{
	apt_own_update
	unpack_image image-6.12 "linux-image-$(abi_6_12)"
}

make_image_7_3()
{
	local abi
	apt_own_update
	abi=$(abi_7_3)
	unpack_image image-7.3 "linux-binary-$abi" "linux-modules-$abi" \
		"linux-base-$abi"
}

# --- UML -------------------------------------------------------------------

uml_fragments()
{
	echo "$UML_DIR/uml-base.config" "$UML_DIR/$1.config"
}

make_uml()
{
	local name=$1 src dir hash
	src=$(get_kernel src-7.3) || return 1
	# shellcheck disable=SC2046
	hash=$(frag_hash $(uml_fragments "$name"))
	dir=$MRSOFT_CACHE/kernels/$name-$(cat "$src/.done")-$hash
	if [ ! -e "$dir/.done" ]; then
		mkdir -p "$dir"
		# shellcheck disable=SC2046
		cat $(uml_fragments "$name") | grep '^CONFIG' >"$dir/fragment.config"
		say "building $name: six to twelve minutes, once"
		quietly "$dir/config.log" make -C "$src" ARCH=um O="$dir" \
			KCONFIG_ALLCONFIG="$dir/fragment.config" alldefconfig || return 1
		quietly "$dir/build.log" nice make -C "$src" ARCH=um O="$dir" \
			-j"$JOBS" linux modules || return 1
		quietly "$dir/install.log" make -C "$src" ARCH=um O="$dir" \
			INSTALL_MOD_PATH="$dir/root" modules_install || return 1
		cp "$dir/include/config/kernel.release" "$dir/release"
	fi
	publish "$name" "$dir" "$hash"
}

# --- the one entry ---------------------------------------------------------

make_kernel()
{
	case $1 in
	uml-*)
		current "$1" "$2" || locked uml-build make_uml "$1"
		;;
	*)
		current "$1" || "make_$(echo "$1" | tr '.-' '__')"
		;;
	esac
}

# get_kernel NAME - make NAME if it is not in the cache; print its directory.
get_kernel()
{
	local name=$1 hash=

	case $name in
	uml-*)
		[ -e "$UML_DIR/$name.config" ] || die "no kernel named $name"
		# shellcheck disable=SC2046
		hash=$(frag_hash $(uml_fragments "$name"))
		;;
	src-7.3 | kdir-6.1 | kdir-6.12 | kdir-7.3 | image-6.1 | image-6.12 | image-7.3) ;;
	*) die "no kernel named $name" ;;
	esac
	if ! current "$name" "$hash"; then
		mkdir -p "$MRSOFT_CACHE/kernels"
		locked "$name" make_kernel "$name" "$hash" >&2 || return 1
	fi
	readlink -f "$MRSOFT_CACHE/$name"
}
