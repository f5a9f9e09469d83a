# SPDX-License-Identifier: GPL-2.0
#
# mrsoft out of tree: "make help" lists the targets.  What is more than one line
# is a script below tools/.

KDIR ?= /lib/modules/$(shell uname -r)/build
T := tools/testing

all: modules

modules modules_install: $(KDIR)/Makefile
	$(MAKE) -C $(KDIR) M=$(CURDIR) $@

clean:
	@if [ -e $(KDIR)/Makefile ]; then $(MAKE) -C $(KDIR) M=$(CURDIR) $@; \
	else git clean -fdXq -- drivers kunit; fi

$(KDIR)/Makefile:
	@echo "No kernel headers in $(KDIR): apt-get install linux-headers-$$(uname -r)" \
		"(or linux-headers-amd64 and a reboot), or give KDIR=" >&2; exit 1

check:
	@$T/check

check-fast:
	@$T/check --fast

kunit:
	@$T/check uml-plain kunit

checkpatch sparse layers:
	@$T/check host $@

prepare:
	@$T/prepare

VARIANT ?= plain

vm:
	@$T/vm/run $(SCRIPT) $(ARGS)

uml:
	@$T/uml/run $(VARIANT) $(SCRIPT) $(ARGS)

demo:
	@tools/demo/run

bench:
	@tools/bench/run $(ROUNDS)

help:
	@echo 'make                   build mrsoft.ko against KDIR (the running kernel)'
	@echo 'make modules_install   install it'
	@echo 'make clean             remove what was built'
	@echo
	@echo 'make demo              see it work, in a virtual machine'
	@echo 'make check             all tests (Debian 12, as root; installs what it needs)'
	@echo 'make check-fast        what to run before a commit'
	@echo 'make bench             how fast it is, beside rdma_rxe (ROUNDS=3)'
	@echo 'make kunit             unit tests in User Mode Linux'
	@echo 'make checkpatch sparse layers   one check of the sources each'
	@echo
	@echo 'make vm                a root shell in QEMU on a stock kernel (KERNEL=6.1)'
	@echo 'make vm SCRIPT=FILE    run a script there (ARGS=, TIMEOUT=)'
	@echo 'make uml               a root shell in User Mode Linux (VARIANT=plain)'
	@echo 'make uml SCRIPT=FILE   run a script there (VARIANT=plain, kasan, lockdep)'
	@echo 'make prepare           packages and test kernels, into MRSOFT_CACHE'

.PHONY: all modules modules_install clean check check-fast kunit checkpatch \
	sparse layers prepare vm uml demo bench help
