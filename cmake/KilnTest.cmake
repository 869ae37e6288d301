# Catch2's expressions take longer to compile than what they test: optimised little (a quarter of the time less), under
# sanitizers not at all.
set(KILN_TEST_OPTIONS -O1)
if(KILN_SANITIZE)
  set(KILN_TEST_OPTIONS -O0)
  if(KILN_SANITIZE MATCHES address AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    list(APPEND KILN_TEST_OPTIONS --param=asan-instrumentation-with-call-threshold=0)  # an eighth of the time less
  elseif(KILN_SANITIZE MATCHES undefined)
    # What is tested has the checks. Without them, and without columns, the tests compile in an eighth of the time less.
    list(APPEND KILN_TEST_OPTIONS -fno-sanitize=undefined -gno-column-info)
  endif()
endif()

if(KILN_TESTS AND NOT KILN_FUZZ)
  add_library(kiln_catch OBJECT ${CMAKE_CURRENT_LIST_DIR}/catch_precompiled.cpp)
  target_link_libraries(kiln_catch PUBLIC Catch2::Catch2)
  target_precompile_headers(kiln_catch PUBLIC <catch2/catch.hpp> ${KILN_STANDARD_HEADERS})
  target_compile_options(kiln_catch PRIVATE -fPIE ${KILN_TEST_OPTIONS})  # as the executables that reuse the precompiled header
  add_library(kiln_test_main OBJECT
    ${PROJECT_SOURCE_DIR}/tests/support/test_main.cpp ${PROJECT_SOURCE_DIR}/tests/support/case_limit.cpp)
  target_link_libraries(kiln_test_main PUBLIC Catch2::Catch2)
  target_include_directories(kiln_test_main PRIVATE ${PROJECT_SOURCE_DIR}/tests)
  target_compile_options(kiln_test_main PRIVATE -fPIE ${KILN_TEST_OPTIONS})
  set_target_properties(kiln_test_main PROPERTIES UNITY_BUILD OFF)  # it holds all of Catch2
endif()

# use_tls=0: the leak checker of GCC 12 dies reading the thread-local storage of libgomp's threads where libraries were
# opened after those threads began. atexit_sleep_ms: instead of a second, which some tests' hundreds of processes would sleep each.
# verify_asan_link_order=0: the simulator, which is never built with a sanitizer, is preloaded before the sanitizer.
# quarantine_size_mb, malloc_context_size: an eighth and a third of the usual; freed memory that comes back sooner costs fewer
# page faults. Quoted: the sanitizers' options end at a space. KILN_SIM_CHECK: hazards on the simulated AMD device fail a test.
set(KILN_SANITIZER_ENVIRONMENT
  "ASAN_OPTIONS=verify_asan_link_order=0:quarantine_size_mb=32:malloc_context_size=10"
  "LSAN_OPTIONS=suppressions='${PROJECT_SOURCE_DIR}/tests/support/lsan.supp':print_suppressions=0:use_tls=0"
  "TSAN_OPTIONS=suppressions='${PROJECT_SOURCE_DIR}/tests/support/tsan.supp':atexit_sleep_ms=20"
  "KILN_SIM_CHECK=1")

# kiln_add_run(TEST COMMAND… [PARTS N]): a CTest test that runs a test binary, or N tests TEST_1 to TEST_N that run a share
# of the cases each. CTest counts one as skipped where all its cases are; scripts/test lists what was skipped. Their names
# are in the variable TEST_runs.
function(kiln_add_run name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "PARTS" "COMMAND")
  set(runs ${name})
  if(arg_PARTS)
    set(runs)
    foreach(part RANGE 1 ${arg_PARTS})
      list(APPEND runs ${name}_${part})
    endforeach()
  endif()
  foreach(run IN LISTS runs)
    add_test(NAME ${run} COMMAND ${arg_COMMAND})
    set(variables "KILN_TEST_SKIPPED=set:${PROJECT_BINARY_DIR}/tests/${run}.skipped")
    if(arg_PARTS)
      string(REGEX MATCH "[0-9]+$" part ${run})
      list(APPEND variables "KILN_TEST_PART=set:${part}/${arg_PARTS}")
    endif()
    set_tests_properties(${run} PROPERTIES SKIP_RETURN_CODE 77 ENVIRONMENT_MODIFICATION "${variables}")
  endforeach()
  set(${name}_runs ${runs} PARENT_SCOPE)
endfunction()

# kiln_label_unsanitized(TESTS…): what CTest runs of them in the preset `unsanitized`: tests that a build with a sanitizer
# does not have, or that look at what it changes.
function(kiln_label_unsanitized)
  set_property(TEST ${ARGN} APPEND PROPERTY LABELS unsanitized)
endfunction()

# kiln_keep_unsanitized(VARIABLE): leaves out of the listed sources those with cases of which none is tagged [unsanitized].
function(kiln_keep_unsanitized variable)
  set(kept)
  foreach(source IN LISTS ${variable})
    file(STRINGS ${source} cases REGEX "TEST_CASE|\\[unsanitized\\]")
    if(NOT cases OR cases MATCHES "\\[unsanitized\\]")
      list(APPEND kept ${source})
    endif()
  endforeach()
  set(${variable} ${kept} PARENT_SCOPE)
endfunction()

# kiln_add_test(NAME SOURCES… [LIBRARIES…] [DEPENDS…] [TIMEOUT SECONDS] [COST SECONDS] [PARTS N]
#               [UNSANITIZED CASES] [UNSANITIZED_PARTS N] [NOT_SANITIZED]): one Catch2 binary, run by kiln_add_run. Inner
# headers of core are visible. COST: of the long ones, which CTest begins with. UNSANITIZED: which of its cases a build
# with a sanitizer skips, shortens or compiles otherwise, as Catch2 selects them. With KILN_UNSANITIZED_TESTS they are the
# test NAME_unsanitized. NOT_SANITIZED: all of them; a build with a sanitizer then has the target NAME only with
# KILN_ALL_SANITIZED. No part may be without a case.
function(kiln_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "NOT_SANITIZED" "TIMEOUT;COST;PARTS;UNSANITIZED;UNSANITIZED_PARTS"
    "SOURCES;LIBRARIES;DEPENDS")
  if(arg_NOT_SANITIZED)
    if(KILN_SANITIZE AND NOT KILN_ALL_SANITIZED)
      return()
    endif()
    set(arg_UNSANITIZED "~[.]")
    set(arg_UNSANITIZED_PARTS ${arg_PARTS})
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 600)
    if(KILN_SANITIZE)
      set(arg_TIMEOUT 2400)
    endif()
  endif()
  if(KILN_UNSANITIZED_TESTS AND arg_UNSANITIZED STREQUAL "[unsanitized]")
    kiln_keep_unsanitized(arg_SOURCES)
  endif()
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE kiln_core kiln_json kiln_test_main ${arg_LIBRARIES})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR}/core ${PROJECT_SOURCE_DIR}/tests)
  target_compile_options(${name} PRIVATE ${KILN_TEST_OPTIONS})
  target_link_options(${name} PRIVATE ${KILN_TEST_LINK_OPTIONS})
  target_precompile_headers(${name} REUSE_FROM kiln_catch)
  target_compile_definitions(${name} PRIVATE
    KILN_SOURCE_DIR="${PROJECT_SOURCE_DIR}" KILN_BINARY_DIR="${PROJECT_BINARY_DIR}"
    KILN_PLUGIN_DIR="${KILN_PLUGIN_OUTPUT_DIRECTORY}")
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/tests)
  if(arg_DEPENDS)
    add_dependencies(${name} ${arg_DEPENDS})
  endif()
  set(parts)
  if(arg_PARTS)
    set(parts PARTS ${arg_PARTS})
  endif()
  kiln_add_run(${name} COMMAND ${name} ${parts})
  if(KILN_UNSANITIZED_TESTS AND arg_UNSANITIZED)
    add_dependencies(kiln_unsanitized_tests ${name})
    set(runs ${${name}_runs})
    set(parts)
    if(arg_UNSANITIZED_PARTS)
      set(parts PARTS ${arg_UNSANITIZED_PARTS})
    endif()
    kiln_add_run(${name}_unsanitized COMMAND ${name} "${arg_UNSANITIZED}" ${parts})
    kiln_label_unsanitized(${${name}_unsanitized_runs})
    set(${name}_runs ${runs} ${${name}_unsanitized_runs})
  endif()
  # Drivers and their libraries are not built with a sanitizer: what is theirs, and only that, stands in the two files.
  set_tests_properties(${${name}_runs} PROPERTIES TIMEOUT ${arg_TIMEOUT} ENVIRONMENT "${KILN_SANITIZER_ENVIRONMENT}")
  if(arg_COST)
    set_tests_properties(${${name}_runs} PROPERTIES COST ${arg_COST})
  endif()
  set(${name}_runs ${${name}_runs} PARENT_SCOPE)
endfunction()
