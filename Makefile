# Makefile: builds Pantheon, tests it, installs it.  `make help` lists the targets.
#
# Variables:
#   SAN=address|undefined|thread   build with a sanitizer, in build/san-$(SAN)
#   DEBUG=1                        no optimization, in build/debug
#   CC=clang-14                    another compiler, in build/cc-clang-14
#   WERROR=1                       warnings are errors
#   V=1                            print whole commands
#   BUILD=dir                      results go there, whatever the flags
#   FILTER=text                    `make test`: only tests whose name contains it
#   BENCH=1                        `make checkasm`: time the kernels too
#   PANTHEON_CPU=c|avx2|avx512|amx  lower the kernel level of what is run
#
# A folder can say what its own files need in FOLDER/flags.mk, where FILE is a
# source without `.c`:  CFLAGS_FILE  LDFLAGS_FILE  LIBS_FILE  and LIBS_NAME for a plugin.

VERSION := $(or $(shell sed -n 's/^.define PN_VERSION "\(.*\)"/\1/p' core/include/pantheon/pantheon.h 2>/dev/null),0)
SONAME  := libpantheon.so.0
PREFIX  ?= /usr/local

MAKEFLAGS += --no-builtin-rules --no-print-directory
.SUFFIXES:
.DELETE_ON_ERROR:
.SECONDARY:
.DEFAULT_GOAL := all

empty :=
space := $(empty) $(empty)

# ---- which build this is ----------------------------------------------------

DEFAULT_CC := gcc
ifeq ($(SAN),thread)
# ThreadSanitizer does not see into gcc's OpenMP runtime; with LLVM's it does (through Archer).
DEFAULT_CC := clang-14
endif
ifeq ($(SAN),fuzzer)
DEFAULT_CC := clang-14
endif
ifneq ($(filter default undefined,$(origin CC)),)
CC := $(DEFAULT_CC)
endif
AR ?= ar

ifeq ($(filter-out address undefined thread fuzzer,$(SAN)),)
else
$(error SAN=$(SAN) is not known; wanted: address, undefined or thread)
endif

# Every choice that changes the objects has a part in the folder's name.
VARIANT := $(strip $(if $(SAN),san-$(SAN)) $(if $(filter-out 0,$(DEBUG)),debug) \
             $(if $(filter-out $(DEFAULT_CC),$(CC)),cc-$(subst /,_,$(subst $(space),-,$(CC)))))
ifeq ($(origin BUILD),undefined)
BUILD := build$(if $(VARIANT),/$(subst $(space),-,$(VARIANT)))
endif
OBJ := $(BUILD)/obj

TARGET := $(shell $(CC) -dumpmachine 2>/dev/null || uname -m)
ARCH   := $(firstword $(subst -, ,$(TARGET)))

# ---- flags ------------------------------------------------------------------

ifneq ($(filter-out 0,$(DEBUG)),)
OPT := -O0 -g3
else ifneq ($(SAN),)
OPT := -O1 -g -fno-omit-frame-pointer
else
OPT := -O3 -g
endif

SAN_address   := -fsanitize=address
SAN_undefined := -fsanitize=undefined,float-cast-overflow -fno-sanitize-recover=all
SAN_thread    := -fsanitize=thread
SAN_fuzzer    := -fsanitize=fuzzer-no-link,address,undefined -fno-sanitize-recover=undefined
SAN_FLAGS     := $(SAN_$(SAN))

CFLAGS ?= $(OPT)
WARN   := -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wstrict-prototypes -Wvla \
          $(if $(filter-out 0,$(WERROR)),-Werror)
# Ours come after the user's: the same bits on every machine do not hold without -ffp-contract=off.
ALL_CFLAGS = -std=c11 -D_GNU_SOURCE -DHASH_NONFATAL_OOM=1 $(ARCH_DEFS) $(WARN) $(CPPFLAGS) $(CFLAGS) $(SAN_FLAGS) \
             -fno-math-errno -ffp-contract=off

# Flags by folder, chosen by the source's path (first word, or `tests-` and the second).
KIND_core     := -fPIC -fvisibility=hidden -fopenmp -Icore/include
KIND_plugins  := -fPIC -fvisibility=hidden -Icore/include
KIND_arch     := $(KIND_plugins)
KIND_quant    := $(KIND_plugins)
KIND_tools    := -Icore/include
KIND_tests-unit     := -Icore -Icore/include -Itests -Wno-conversion
KIND_tests-checkasm := $(KIND_tests-unit)
KIND_tests-fuzz     := $(KIND_tests-unit)
KIND_tests-plugins  := -fPIC -fvisibility=hidden -Icore/include -Wno-conversion

# Instruction sets by file name suffix; a suffix that the target lacks leaves the file out.
ISAS := avx2 avx512 amx neon
ifneq ($(filter x86_64 amd64,$(ARCH)),)
ARCH_DEFS   := -DPN_HAVE_X86=1
HAVE_ISAS   := avx2 avx512 amx
ISA_avx2    := -mavx2 -mfma -mf16c
ISA_avx512  := $(ISA_avx2) -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni
ISA_amx     := $(ISA_avx512) -mamx-tile -mamx-int8
# Full debug information doubles what it costs to compile a kernel's unrolled loops; lines are enough.
ifeq ($(filter-out 0,$(DEBUG)),)
ISA_avx2    += -g1
ISA_avx512  += -g1
ISA_amx     += -g1
endif
else ifneq ($(filter aarch64 arm64,$(ARCH)),)
ARCH_DEFS   := -DPN_HAVE_NEON=1
HAVE_ISAS   := neon
ISA_neon    := -march=armv8.2-a+dotprod
endif

isa_of     = $(filter $(ISAS),$(lastword $(subst _, ,$(basename $(notdir $(1))))))
path_kind  = $(subst $(space),-,$(wordlist 1,$(if $(filter tests/%,$(1)),2,1),$(subst /, ,$(1))))
no_isa     = $(foreach f,$(1),$(if $(call isa_of,$(f)),,$(f)))
buildable  = $(foreach f,$(1),$(if $(filter-out $(HAVE_ISAS),$(call isa_of,$(f))),,$(f)))
objects    = $(patsubst %.c,$(OBJ)/%.o,$(1))
src_cflags = $(ALL_CFLAGS) $(KIND_$(call path_kind,$(1))) $(ISA_$(call isa_of,$(1))) $(CFLAGS_$(basename $(1)))

LIBS_libpantheon := -ldl -linih -fopenmp -lm
LIBS_pantheon    := -ledit -lpthread -lm
LIBS_bpe         := -lpcre2-8 -lutf8proc

-include $(wildcard core/flags.mk plugins/flags.mk arch/flags.mk quant/flags.mk tools/flags.mk tests/flags.mk \
                    tests/*/flags.mk)

# A sanitizer's runtime is in the program, so a plugin may leave its symbols open then.
NO_UNDEFINED := $(if $(SAN),,-Wl,-z,defs)
HARDEN       := -Wl,-z,relro -Wl,-z,now

# ---- sources ----------------------------------------------------------------

CORE_SRCS  := $(call buildable,$(wildcard core/*.c core/*/*.c))
TOOL_SRCS  := $(call buildable,$(wildcard tools/*.c))
CHECK_SRCS := $(call buildable,$(wildcard tests/checkasm/*.c))
UNIT_SRCS  := $(wildcard tests/unit/test_*.c)
HELP_SRCS  := $(filter-out $(UNIT_SRCS),$(wildcard tests/unit/*.c))
TPLUG_SRCS := $(wildcard tests/plugins/*.c)
FUZZ_SRCS  := $(wildcard tests/fuzz/fuzz_*.c)

OBJS_libpantheon := $(call objects,$(CORE_SRCS))
OBJS_pantheon    := $(call objects,$(TOOL_SRCS))
OBJS_checkasm    := $(call objects,$(CHECK_SRCS))
OBJS_helpers     := $(call objects,$(HELP_SRCS))

# NAME.c, NAME_ISA.c and NAME/*.c of a plugin folder make NAME.so.
plugin_names = $(sort $(basename $(notdir $(call no_isa,$(wildcard $(1)/*.c)))) \
                      $(patsubst $(1)/%/,%,$(dir $(wildcard $(1)/*/*.c))))
plugin_srcs  = $(call buildable,$(wildcard $(1)/$(2).c $(foreach i,$(ISAS),$(1)/$(2)_$(i).c) $(1)/$(2)/*.c))

PLUGIN_DIRS  := plugins arch quant
PLUGIN_NAMES := $(foreach d,$(PLUGIN_DIRS),$(call plugin_names,$(d)))
ifneq ($(words $(PLUGIN_NAMES)),$(words $(sort $(PLUGIN_NAMES))))
$(error two plugins have the same name: $(PLUGIN_NAMES))
endif
$(foreach d,$(PLUGIN_DIRS),$(foreach n,$(call plugin_names,$(d)),\
  $(eval OBJS_plugin-$(n) := $(call objects,$(call plugin_srcs,$(d),$(n))))))

PLUGINS   := $(PLUGIN_NAMES:%=$(BUILD)/plugins/%.so)
LIBRARY   := $(if $(CORE_SRCS),$(BUILD)/libpantheon.so $(BUILD)/$(SONAME) $(BUILD)/libpantheon.a)
PROGRAM   := $(if $(TOOL_SRCS),$(BUILD)/pantheon)
UNITS     := $(UNIT_SRCS:tests/unit/%.c=$(BUILD)/tests/%)
UNITS_RUN := $(foreach u,$(UNITS),$(if $(findstring $(or $(FILTER),unit/),unit/$(notdir $(u))),$(u)))
# Not in a folder `plugins` beside the unit tests: that is where a program finds its plugins unasked.
TPLUGINS  := $(TPLUG_SRCS:tests/plugins/%.c=$(BUILD)/tests/test-plugins/%.so)
CHECKASM  := $(if $(CHECK_SRCS),$(BUILD)/tests/checkasm)
FUZZERS   := $(FUZZ_SRCS:tests/fuzz/%.c=$(BUILD)/tests/%)

# ---- targets for people -----------------------------------------------------

MODEL := SmolLM2-135M-Instruct.Q4_1.gguf
# Sub-makes use every CPU unless the user chose a number.
PARALLEL = $(if $(filter -j% --jobserver%,$(MAKEFLAGS)),,-j$(shell nproc))
# What scripts/deps.sh should look for.
CLANG := $(if $(filter thread fuzzer,$(SAN))$(findstring clang,$(CC)),clang)
DEPS  ?= build model test $(CLANG)

.PHONY: all tests demo test checkasm bench bench-peers fuzz install uninstall clean help deps model prune FORCE

all: $(LIBRARY) $(PLUGINS) $(PROGRAM) prune ## build the library, the plugins and the program (default)

tests: all $(UNITS_RUN) $(TPLUGINS) $(CHECKASM) ## build the test programs, run nothing

demo: ## install what is missing, fetch the model, build, and ask it a question
	@echo "demo: will check the Debian packages needed (installing those that are missing), build into $(BUILD)/,"
	@echo "      fetch the SmolLM2 model (89 MiB, once) and ask it a question."
	@CC="$(CC)" scripts/deps.sh install build model $(CLANG)
	@$(MAKE) $(PARALLEL) all
	@scripts/fetch-model.sh
	$(BUILD)/pantheon run -c conf/smollm2.ini --chat -p "What is the capital of France?"

test: ## install what is missing, fetch the model, build, and run every test (FILTER=text for some)
	@echo "test: will check the Debian packages needed (installing those that are missing), build into $(BUILD)/,"
	@echo "      fetch the SmolLM2 model (89 MiB, once) and vocabularies (36 MiB, once), and run the tests$(if $(FILTER), that match '$(FILTER)')."
	@CC="$(CC)" scripts/deps.sh install $(DEPS)
	@$(MAKE) $(PARALLEL) tests
	@scripts/fetch-model.sh || echo "test: going on without the model; what needs it is skipped"
	@scripts/fetch-vocab.sh || echo "test: going on without the vocabularies; what needs them is skipped"
	@$(RUN_TESTS) unit checkasm scripts

checkasm: $(CHECKASM) all ## compare every kernel with C at every level of this CPU (BENCH=1 times them)
	@$(if $(CHECKASM),PN_BUILD="$(abspath $(BUILD))" $(RUNNER) $(CHECKASM) $(if $(filter-out 0,$(BENCH)),--bench) $(ARGS),\
	  echo "checkasm: tests/checkasm holds no source yet")

bench: all model ## measure prompt and decode speed of the demo's model (ARGS= for more options)
	$(BUILD)/pantheon bench build/models/$(MODEL) $(ARGS)

bench-peers: all model ## measure beside llama.cpp: fetches and builds it, makes the models (once; 5 GiB), compares
	tools/bench/peers.sh
	models=$$(tools/bench/models.sh) && \
	  tools/bench/compare.py --wait 30 --pantheon $(BUILD)/pantheon $(ARGS) build/models/$(MODEL) $$models

FUZZ_SECONDS ?= 10
fuzz: ## run each fuzz target for FUZZ_SECONDS (default 10) with clang's libFuzzer
ifeq ($(SAN),fuzzer)
	@CC="$(CC)" scripts/deps.sh install $(DEPS)
	@$(MAKE) $(PARALLEL) all $(FUZZERS)
	@FUZZ_SECONDS=$(FUZZ_SECONDS) $(RUN_TESTS) fuzz
else
	@$(MAKE) SAN=fuzzer fuzz
endif

install: all ## install under $(DESTDIR)$(PREFIX), PREFIX being /usr/local by default
	@DESTDIR="$(DESTDIR)" PREFIX="$(PREFIX)" BUILD="$(BUILD)" VERSION="$(VERSION)" SONAME="$(SONAME)" \
	  PLUGINS="$(PLUGIN_NAMES)" scripts/install.sh install

uninstall: ## remove what install put there
	@DESTDIR="$(DESTDIR)" PREFIX="$(PREFIX)" scripts/install.sh uninstall

deps: ## install the Debian packages that are missing, saying which
	@CC="$(CC)" scripts/deps.sh install $(DEPS)

model: ## fetch the model of the demo and check it
	@scripts/fetch-model.sh

clean: ## remove what was built (the fetched model stays in the cache)
	rm -rf $(if $(filter file,$(origin BUILD)),build,$(OBJ) $(PLUGINS) $(BUILD)/tests $(LIBRARY) $(PROGRAM))

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z][a-z-]*:.*## / { printf "  make %-11s %s\n", $$1, $$2 }' Makefile
	@awk '/^# Variables:/ { on = 1; print ""; print "Variables:"; next } on && !/^#  / { exit } \
	      on { print substr($$0, 2) }' Makefile

# ---- running tests ----------------------------------------------------------

# EMULATOR is put before each program that is run (qemu-aarch64, for a cross build).
RUNNER    = $(EMULATOR)
RUN_TESTS = BUILD="$(BUILD)" SAN="$(SAN)" FILTER="$(FILTER)" CI="$(CI)" EMULATOR="$(EMULATOR)" CC="$(CC)" \
            MODEL="build/models/$(MODEL)" tests/run.sh

# ---- rules ------------------------------------------------------------------

# Results are written beside their final name and moved there, so that a program that is running,
# or another make, never sees half of one.
Q     := $(if $(filter-out 0,$(V)),,@)
say    = $(if $(Q),@printf '  %-7s %s\n' '$(1)' '$(2)')
finish = mv -f $@.$$$$ $@
# Plugins that others may write are refused, so the umask must not allow it.
SAFE   = umask 022; mkdir -p $(@D)

$(OBJ)/%.o: %.c $(OBJ)/flags | $(OBJ)/deps-build
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(call src_cflags,$<) -MMD -MP -MT $@ -MF $(@:.o=.d).$$$$ -c $< -o $@.$$$$ && \
	  mv -f $(@:.o=.d).$$$$ $(@:.o=.d) && $(finish) || { rm -f $@.$$$$ $(@:.o=.d).$$$$; exit 1; }

CFLAGS_core/loader += -DPN_PLUGINDIR='"$(PREFIX)/lib/pantheon"'
$(OBJ)/core/loader.o: $(OBJ)/flags-plugindir
$(patsubst %,$(OBJ)/%.o,$(basename $(UNIT_SRCS) $(HELP_SRCS))): | $(OBJ)/deps-test

$(BUILD)/libpantheon.so: $(OBJS_libpantheon) $(OBJ)/list-libpantheon
	$(call say,LD,$@)
	$(Q)$(SAFE) && $(CC) -shared -Wl,-soname,$(SONAME) $(SAN_FLAGS) $(HARDEN) $(NO_UNDEFINED) $(LDFLAGS) \
	  $(filter %.o,$^) $(LIBS_libpantheon) $(LDLIBS) -o $@.$$$$ && $(finish)

$(BUILD)/$(SONAME): $(BUILD)/libpantheon.so
	$(Q)ln -sfn libpantheon.so $@

$(BUILD)/libpantheon.a: $(OBJS_libpantheon) $(OBJ)/list-libpantheon
	$(call say,AR,$@)
	$(Q)$(SAFE) && $(AR) rcs $@.$$$$ $(filter %.o,$^) && $(finish)

$(BUILD)/plugins/%.so: $(OBJ)/list-plugin-%
	$(call say,LD,$@)
	$(Q)$(SAFE) && chmod go-w $(@D) && $(CC) -shared $(SAN_FLAGS) $(HARDEN) $(NO_UNDEFINED) $(LDFLAGS) \
	  $(filter %.o,$^) $(LIBS_$*) -lm $(LDLIBS) -o $@.$$$$ && $(finish)
$(foreach n,$(PLUGIN_NAMES),$(eval $(BUILD)/plugins/$(n).so: $(OBJS_plugin-$(n))))

$(BUILD)/pantheon: $(OBJS_pantheon) $(OBJ)/list-pantheon $(BUILD)/libpantheon.so | $(BUILD)/$(SONAME)
	$(call say,LD,$@)
	$(Q)$(SAFE) && $(CC) $(SAN_FLAGS) $(HARDEN) $(LDFLAGS) $(filter %.o,$^) $(BUILD)/libpantheon.so \
	  -Wl,-rpath,'$$ORIGIN' -Wl,-rpath,'$$ORIGIN/../lib' $(LIBS_pantheon) $(LDLIBS) -o $@.$$$$ && $(finish)

# Helpers are an archive, so that a test takes only those that it calls.
$(BUILD)/tests/helpers.a: $(OBJS_helpers) $(OBJ)/list-helpers
	$(Q)mkdir -p $(@D) && $(AR) rcs $@.$$$$ $(filter %.o,$^) && $(finish)

$(UNITS): $(BUILD)/tests/%: $(OBJ)/tests/unit/%.o $(BUILD)/tests/helpers.a $(BUILD)/libpantheon.a
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(SAN_FLAGS) $(LDFLAGS) $(LDFLAGS_tests/unit/$*) $^ $(LIBS_tests/unit/$*) -lcmocka \
	  $(LIBS_libpantheon) $(LDLIBS) -o $@.$$$$ && $(finish)

$(TPLUGINS): $(BUILD)/tests/test-plugins/%.so: $(OBJ)/tests/plugins/%.o
	$(call say,LD,$@)
	$(Q)$(SAFE) && chmod go-w $(@D) && $(CC) -shared $(SAN_FLAGS) $(LDFLAGS) $(LDFLAGS_tests/plugins/$*) $^ \
	  $(LIBS_tests/plugins/$*) -lm $(LDLIBS) -o $@.$$$$ && $(finish)

$(BUILD)/tests/checkasm: $(OBJS_checkasm) $(OBJ)/list-checkasm $(BUILD)/libpantheon.a
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(SAN_FLAGS) $(LDFLAGS) $(LDFLAGS_tests/checkasm) $(filter %.o %.a,$^) \
	  $(LIBS_tests/checkasm) $(LIBS_libpantheon) $(LDLIBS) -o $@.$$$$ && $(finish)

# -rdynamic: the plugins find the fuzzer's counters in the program.
$(FUZZERS): $(BUILD)/tests/%: $(OBJ)/tests/fuzz/%.o $(BUILD)/libpantheon.a
	$(call say,LD,$@)
	$(Q)mkdir -p $(@D) && $(CC) -rdynamic $(subst fuzzer-no-link,fuzzer,$(SAN_FLAGS)) $(LDFLAGS) \
	  $(LDFLAGS_tests/fuzz/$*) $^ $(LIBS_tests/fuzz/$*) $(LIBS_libpantheon) $(LDLIBS) -o $@.$$$$ && $(finish)

# A plugin whose source is gone must not be found any more.
prune: $(PLUGINS)
	@for f in $(filter-out $(PLUGINS),$(wildcard $(BUILD)/plugins/*.so)); do \
	  echo "  RM      $$f (its source is gone)"; rm -f $$f; done

# ---- what makes a rebuild ---------------------------------------------------

quote    = '$(subst ','\'',$(1))'
# Written only when the text differs, so its time tells when flags last changed.
remember = @mkdir -p $(@D); printf '%s\n' $(call quote,$(1)) | cmp -s - $@ || printf '%s\n' $(call quote,$(1)) > $@
per_file = $(foreach v,$(sort $(filter CFLAGS_% LDFLAGS_% LIBS_% KIND_% ISA_%,$(.VARIABLES))),\
             $(if $(filter CFLAGS_core/loader,$(v)),,$(v)=$($(v))))

$(OBJ)/flags: FORCE
	$(call remember,$(CC) $(TARGET) $(ALL_CFLAGS) $(LDFLAGS) $(LDLIBS) $(per_file))

$(OBJ)/flags-plugindir: FORCE
	$(call remember,$(CFLAGS_core/loader))

# Depends on the list of objects, so that removing a source links anew.
$(OBJ)/list-%: FORCE $(OBJ)/flags
	$(call remember,$(OBJS_$*))

# Asked once per build folder: are the headers and tools there?
$(OBJ)/deps-%:
	@CC="$(CC)" scripts/deps.sh check $* $(CLANG) && mkdir -p $(@D) && touch $@

-include $(patsubst %.o,%.d,$(OBJS_libpantheon) $(OBJS_pantheon) $(OBJS_checkasm) $(OBJS_helpers) \
           $(foreach n,$(PLUGIN_NAMES),$(OBJS_plugin-$(n))) $(call objects,$(UNIT_SRCS) $(TPLUG_SRCS) $(FUZZ_SRCS)))
