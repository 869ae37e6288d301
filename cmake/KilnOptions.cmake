# How everything is compiled: standard, warnings, sanitizers, and a build tree that is laid out like the installed one.
option(KILN_WERROR "Warnings are errors" OFF)
option(KILN_TESTS "Build the tests and examples" ON)
option(KILN_BENCHMARKS "Build the benchmarks" ON)
option(KILN_UNSANITIZED_TESTS "Of the tests, build only those that a build with a sanitizer leaves out (label unsanitized)" OFF)
option(KILN_ALL_SANITIZED "With a sanitizer, build also the tests that preset unsanitized runs whole (NOT_SANITIZED)" OFF)
option(KILN_FUZZ "Build only the fuzz targets (needs Clang)" OFF)
set(KILN_SANITIZE "" CACHE STRING "Value of -fsanitize=, empty for none")

set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)

find_program(KILN_CCACHE ccache)
if(KILN_CCACHE AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  # The sloppiness is what ccache needs to keep objects made with a precompiled header. It goes by the compiler's list of
  # headers, so that a build that finds nothing kept need not preprocess each source first; and one build folder may use
  # what another one made: a sanitizer's build makes the simulator as preset `unsanitized`
  # does.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env CCACHE_SLOPPINESS=pch_defines,time_macros CCACHE_DEPEND=1
    CCACHE_NOHASHDIR=1 ${KILN_CCACHE})
endif()

add_compile_options(-Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Wcast-qual -Wundef
                    -fno-semantic-interposition)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  add_compile_options(-Wno-old-style-cast)  # it warns of the C headers' inline functions; GCC, which does not, looks at the rest
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND NOT KILN_FUZZ)
  # Needed where a precompiled header meets ccache; harmless elsewhere.
  add_compile_options(-fpch-preprocess)
elseif(NOT KILN_FUZZ)
  # A precompiled header without the time at which it was made: ccache then finds what was compiled with an equal one.
  add_compile_options("SHELL:-Xclang -fno-pch-timestamp")
endif()
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 sees overlaps and overruns in chains of std::string where there are none; the address sanitizer sees real ones.
  add_compile_options(-Wno-restrict -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread)
endif()
# What nearly every source reads of the standard library: a third of the time to compile a small one. Precompiled once a
# target of more than a few sources.
set(KILN_STANDARD_HEADERS <algorithm> <array> <atomic> <chrono> <filesystem> <functional> <map> <memory> <mutex> <optional>
  <set> <span> <string> <string_view> <thread> <unordered_map> <utility> <variant> <vector>)
# kiln_precompile(TARGET): reuses the precompiled headers of the top folder. After the target's visibility is set.
function(kiln_precompile target)
  set(from kiln_precompiled)
  get_target_property(visibility ${target} CXX_VISIBILITY_PRESET)
  if(TARGET kiln_precompiled_hidden AND visibility STREQUAL "hidden")
    set(from kiln_precompiled_hidden)
  endif()
  target_precompile_headers(${target} REUSE_FROM ${from})
endfunction()
if(KILN_WERROR)
  add_compile_options(-Werror)
endif()
if(KILN_SANITIZE)
  add_compile_options(-fsanitize=${KILN_SANITIZE} -fno-omit-frame-pointer)
  add_link_options(-fsanitize=${KILN_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
    # Its runtime as a library of its own, as with GCC: shared libraries and plugins then leave no symbol unresolved.
    execute_process(COMMAND ${CMAKE_CXX_COMPILER} -print-runtime-dir OUTPUT_VARIABLE KILN_CLANG_RUNTIME
      OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
    add_link_options(-shared-libsan -Wl,-rpath,${KILN_CLANG_RUNTIME})
    if(KILN_SANITIZE MATCHES address)
      add_compile_definitions(__SANITIZE_ADDRESS__)  # as GCC defines it
    elseif(KILN_SANITIZE MATCHES thread)
      add_compile_definitions(__SANITIZE_THREAD__)
    endif()
  else()
    add_compile_options(-Wno-maybe-uninitialized)  # the sanitizers' own code makes GCC 12 see such members where there are none
  endif()
  if(KILN_SANITIZE MATCHES undefined)
    add_compile_options(-fno-sanitize-recover=undefined)
  endif()
  if(KILN_SANITIZE MATCHES address)
    # It meets a null pointer and one beyond its object where memory is touched by them: looking for them at each use as
    # well takes a sixth of the time to compile. Alignment, sums of pointers and dynamic types take a third; the fuzz
    # targets check them in the readers of foreign bytes.
    add_compile_options(-fno-sanitize=null,object-size,alignment,pointer-overflow,vptr)
  endif()
endif()

# LLD links in a fifth of the time that GNU's linker takes. Tests and benchmarks are linked with it where it is installed,
# and with a sanitizer all; what users install is linked with the compiler's own.
find_program(KILN_LLD ld.lld)
set(KILN_TEST_LINK_OPTIONS)
if(KILN_LLD)
  set(KILN_TEST_LINK_OPTIONS -fuse-ld=lld)
endif()
if(KILN_SANITIZE)
  add_link_options(${KILN_TEST_LINK_OPTIONS})
endif()
# Optimises what tests spend their time in, the simulator and the reference. Preset `asan` optimises nothing else: that would
# take longer than it saves.
set(KILN_HOT_OPTIONS -O2)
if(KILN_SANITIZE)
  set(KILN_HOT_OPTIONS -O1)
endif()

set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib)
# CMake fills the run path of what it links for the build with colons, to replace it at the installation. An empty
# element is the current folder. So nothing is replaced. What is not installed sets CMAKE_INSTALL_RPATH.
set(CMAKE_BUILD_WITH_INSTALL_RPATH ON)
set(KILN_PLUGIN_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/lib/kiln/plugins)
set(KILN_LIBEXEC_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/libexec/kiln)
