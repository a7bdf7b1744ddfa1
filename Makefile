# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# `make help` lists the targets. Everything that is built goes to $(B).

VERSION := 0.1.0
B       := build
PREFIX  := /usr
DESTDIR :=

CC         := gcc
CLANG      := clang
LLVM_STRIP := llvm-strip
PKG_CONFIG := pkg-config
SCDOC      := scdoc
# bpftool and the network tools live in directories that an ordinary user's PATH lacks.
export PATH := $(PATH):/usr/sbin:/sbin
BPFTOOL    := bpftool

LIBS     := libbpf yaml-0.1 jansson libmnl libmd libcurl libmicrohttpd libcap-ng
WARNINGS := -Wall -Wextra -Wshadow -Wmissing-prototypes -Wstrict-prototypes $(if $(WERROR),-Werror)
override CPPFLAGS += -D_GNU_SOURCE -DRINGLB_VERSION='"$(VERSION)"' -I$(B) -Iinclude -Iuser
# Only for the tests of upgrades to and fro: another number for the layout of the maps.
override CPPFLAGS += $(ABI:%=-DRINGLB_ABI_VERSION=%)
override CPPFLAGS += $(shell $(PKG_CONFIG) --cflags $(LIBS))
CFLAGS   ?= -O2 -g
override CFLAGS += -std=gnu11 $(WARNINGS)
override LDLIBS += $(shell $(PKG_CONFIG) --libs $(LIBS)) -lm
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
# clang's BPF target does not look where Debian keeps asm/types.h.
BPFFLAGS := -O2 -g -target bpf -mcpu=v3 -Iinclude -Ibpf -I/usr/include/$(shell $(CC) -print-multiarch) \
            -Wall -Wextra -Wshadow -Wno-unused-parameter $(ABI:%=-DRINGLB_ABI_VERSION=%) $(if $(WERROR),-Werror)

comma := ,
Q   := $(if $(filter 1,$(V)),,@)
# Silent with V=1, where the commands speak, and with make -s.
say  = @$(if $(filter 1,$(V))$(findstring s,$(firstword -$(MAKEFLAGS))),:,printf '  %-8s %s\n')

SKEL  := $(patsubst bpf/%.bpf.c,$(B)/%.skel.h,$(wildcard bpf/*.bpf.c))
OBJ   := $(patsubst %.c,%.o,$(wildcard user/*.c))
LIB   := $(filter-out user/main.o,$(OBJ))
UNIT  := $(patsubst %.c,%,$(wildcard tests/unit/test_*.c))
PRIV  := $(patsubst %.c,%,$(wildcard tests/priv/test_*.c))
GROW  := $(patsubst %.c,%.o,$(filter-out tests/priv/test_%,$(wildcard tests/priv/*.c)))
SHARE := $(patsubst %.c,%.o,$(filter-out tests/unit/test_%,$(wildcard tests/unit/*.c)))
AIDS  := $(patsubst %.bpf.c,$(B)/%.bpf.o,$(wildcard tests/*/*.bpf.c))
BENCH := $(patsubst %.c,$(B)/%.o,$(filter-out %.bpf.c,$(wildcard tests/bench/*.c)))
BSKEL := $(patsubst %.bpf.c,$(B)/%.skel.h,$(wildcard tests/bench/*.bpf.c))
SERVE := $(B)/asan/tests/listener/serve
NETS  := $(addprefix $(B)/tests/net/,breaktest_client breaktest_server breaktest_flood crash) $(B)/tests/bench/traffic/traffic
PROBE := $(B)/tests/net/probe_driver
FUZZ  := $(patsubst %.c,$(B)/%.o,$(wildcard tests/fuzz/*.c))
FUZZLIB := $(B)/libfuzzer/config
FUZZBPF := $(B)/libfuzzer/program
KERNELS := 6.1 6.12
MAN   := $(patsubst man/%.scd,$(B)/man/%,$(wildcard man/*.scd))

.PHONY: all check test test-full lint bench install clean help
.DELETE_ON_ERROR:
.SECONDARY:

all: $(B)/ringlb $(MAN) ## the program with its BPF objects inside, and the manual: build/ringlb, build/man/

check: all $(UNIT:%=$(B)/asan/%) ## what is quick of the unit tests, with ASan and UBSan, and of the command line; no privileges, under 10 s
	$(Q)tests/run --quick unit lint cli

TESTS := all $(B)/abi2/ringlb $(AIDS) $(NETS) $(PROBE) $(B)/tests/bench/bench $(B)/tests/fuzz/packets $(FUZZBPF) $(UNIT:%=$(B)/asan/%) $(PRIV:%=$(B)/asan/%) $(SERVE)
test: $(TESTS) ## check, the listener, the kernel's test runs of packets, network namespaces; root
	$(Q)tests/run unit lint cli listener priv xdp fuzz net placement

# Last, the machines that are emulated: they leave little to what runs beside them.
test-full: $(TESTS) $(FUZZLIB) $(KERNELS:%=$(B)/vm/%/vmlinuz) ## test, and what takes long: other kernels, too; root
	$(Q)tests/run --full unit lint cli listener priv xdp fuzz net placement
	$(Q)tests/run --full vm

lint: ## style, static checks, layers and licences; builds with -Werror
	$(Q)scripts/lint.sh

bench: all $(B)/tests/bench/bench $(NETS) ## what packets, changes and the daemon cost, under 10 minutes; root
	$(Q)scripts/bench.sh

help: ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo 'Variables: V=1 shows the commands, WERROR=1 refuses warnings, B=DIR builds elsewhere,'
	@echo '           PREFIX=/usr and DESTDIR= say where install puts things.'

install: all ## into $(DESTDIR)$(PREFIX)
	install -D -m 755 $(B)/ringlb '$(DESTDIR)$(PREFIX)/sbin/ringlb'
	install -D -m 644 LICENSE '$(DESTDIR)$(PREFIX)/share/doc/ringlb/LICENSE'
	$(foreach page,$(MAN),install -D -m 644 $(page) \
		'$(DESTDIR)$(PREFIX)/share/man/man$(subst .,,$(suffix $(page)))/$(notdir $(page))' &&) :
	install -d '$(DESTDIR)$(PREFIX)/lib/systemd/system'
	$(foreach unit,$(notdir $(wildcard packaging/*.service)),sed 's|/usr/sbin/|$(PREFIX)/sbin/|g' packaging/$(unit) \
		> '$(DESTDIR)$(PREFIX)/lib/systemd/system/$(unit)' &&) :

clean: ## removes build/
	rm -rf $(B)

# BPF: object, then a skeleton that carries it
$(B)/%.bpf.o: %.bpf.c
	$(say) BPF $@
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(BPFFLAGS) -MMD -MP -MF $(@:.o=.d) -MT $@ -c $< -o $@
	$(Q)$(LLVM_STRIP) -g $@

$(B)/%.skel.h: $(B)/bpf/%.bpf.o
	$(say) SKEL $@
	$(Q)$(BPFTOOL) gen skeleton $< name $*_bpf > $@

$(BSKEL): $(B)/%.skel.h: $(B)/%.bpf.o
	$(say) SKEL $@
	$(Q)$(BPFTOOL) gen skeleton $< name $(notdir $*)_bpf > $@

# User space, once as it is and once under the sanitizers
$(B)/%.o: %.c | $(SKEL)
	$(say) CC $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

$(B)/asan/%.o: %.c | $(SKEL)
	$(say) CC $@
	@mkdir -p $(@D)
	$(Q)$(CC) $(CPPFLAGS) $(CFLAGS) -O1 $(SANITIZE) -MMD -MP -c $< -o $@

$(B)/libringlb.a: $(LIB:%=$(B)/%)
$(B)/asan/libringlb.a: $(LIB:%=$(B)/asan/%)
$(B)/libringlb.a $(B)/asan/libringlb.a:
	$(say) AR $@
	@mkdir -p $(@D)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(B)/ringlb: $(B)/user/main.o $(B)/libringlb.a
	$(say) LD $@
	$(Q)$(CC) $(LDFLAGS) $^ $(LDLIBS) -o $@

$(B)/abi2/ringlb: $(B)/ringlb
	$(Q)$(MAKE) --no-print-directory B=$(B)/abi2 ABI=2 VERSION=$(VERSION)+abi2 $@

$(PRIV:%=$(B)/%): $(GROW:%=$(B)/%)
$(PRIV:%=$(B)/asan/%): $(GROW:%=$(B)/asan/%)
$(UNIT:%=$(B)/%) $(PRIV:%=$(B)/%): %: %.o $(SHARE:%=$(B)/%) $(B)/libringlb.a
	$(say) LD $@
	$(Q)$(CC) $(LDFLAGS) $(filter %.o,$^) $(filter %.a,$^) $(LDLIBS) -lcmocka -o $@

$(UNIT:%=$(B)/asan/%) $(PRIV:%=$(B)/asan/%): %: %.o $(SHARE:%=$(B)/asan/%) $(B)/asan/libringlb.a
	$(say) LD $@
	$(Q)$(CC) $(LDFLAGS) $(SANITIZE) $(filter %.o,$^) $(filter %.a,$^) $(LDLIBS) -lcmocka -o $@

# The files that page.c carries.
$(B)/user/page.o $(B)/asan/user/page.o: $(wildcard user/page/*)

$(SERVE): $(SERVE).o $(B)/asan/libringlb.a
	$(say) LD $@
	$(Q)$(CC) $(LDFLAGS) $(SANITIZE) $^ $(LDLIBS) -o $@

$(B)/tests/net/breaktest_client: $(B)/tests/net/breaktest_link.o
$(NETS): %: %.o
	$(say) LD $@
	$(Q)$(CC) $(LDFLAGS) $^ -o $@

$(PROBE): %: %.o $(B)/libringlb.a
	$(say) LD $@
	$(Q)$(CC) $(LDFLAGS) $^ $(LDLIBS) -o $@

# Includes its skeletons as "tests/bench/NAME.skel.h". Calls of the steps of a commit come by its stop watch.
$(BENCH): | $(BSKEL)
$(B)/tests/bench/bench: LDFLAGS += $(addprefix -Wl$(comma)--wrap=,plan_make encode_table encode_publish datapath_wait)
$(B)/tests/bench/bench: $(BENCH) $(B)/libringlb.a
	$(say) LD $@
	$(Q)$(CC) $(LDFLAGS) $^ -lpthread $(LDLIBS) -o $@

$(B)/tests/fuzz/packets: $(FUZZ) $(B)/libringlb.a
	$(say) LD $@
	$(Q)$(CC) $(LDFLAGS) $^ $(LDLIBS) -o $@

# What is fuzzed is compiled anew, so that libFuzzer sees the ways through it; the rest comes from the library.
$(FUZZLIB): tests/libfuzzer/config.c $(wildcard user/config*.c) user/address.c user/diag.c $(B)/libringlb.a
	$(say) FUZZ $@
	@mkdir -p $(@D)
	$(Q)$(CLANG) $(CPPFLAGS) $(CFLAGS) -O1 $(SANITIZE) -fsanitize=fuzzer $(LDFLAGS) $^ $(LDLIBS) -o $@

# The packets' program built for this machine, where its loads need not be aligned either.
$(FUZZBPF): tests/libfuzzer/program.c tests/libfuzzer/world.c $(B)/libringlb.a \
            $(wildcard bpf/* include/* tests/libfuzzer/*.h tests/libfuzzer/bpf/*)
	$(say) FUZZ $@
	@mkdir -p $(@D)
	$(Q)$(CLANG) -Itests/libfuzzer -Ibpf $(CPPFLAGS) $(CFLAGS) -O1 -Wno-unused-parameter -Wno-missing-prototypes \
		$(SANITIZE) -fno-sanitize=alignment -fsanitize=fuzzer $(LDFLAGS) $(wordlist 1,3,$^) $(LDLIBS) -o $@

$(B)/vm/%/vmlinuz: tests/vm/kernel.sh
	$(say) KERNEL $(@D)
	$(Q)tests/vm/kernel.sh $* $(@D)

$(B)/man/%: man/%.scd
	$(say) MAN $@
	@mkdir -p $(@D)
	$(Q)$(SCDOC) < $< > $@

-include $(shell find $(B) -name '*.d' 2>/dev/null)
