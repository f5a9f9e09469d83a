# SPDX-License-Identifier: GPL-2.0
# shellcheck shell=bash
#
# bash completion for mrsoftctl

_mrsoftctl()
{
	local cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}
	local words

	case $prev in
	-d)	words=$(ls /sys/kernel/debug/mrsoft 2>/dev/null) ;;
	why)	words=$(awk '!/^#/ { print $1 }' /sys/kernel/debug/mrsoft/*/mrs \
			2>/dev/null) ;;
	diary)	words='-f -n' ;;
	inject)	words='clear fail hold drop duplicate reorder corrupt delay
			rnr nak overflow error' ;;
	fail)	words='reg rereg dereg' ;;
	hold)	words=dereg ;;
	*)	words='-d status mrs busy why diary ended inject' ;;
	esac
	mapfile -t COMPREPLY < <(compgen -W "$words" -- "$cur")
}

complete -F _mrsoftctl mrsoftctl
