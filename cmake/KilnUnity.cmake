# Compiling each folder of a target as one source, where a build is for running once and not for working in: it reads the
# headers once a folder. Presets `test`, `release` and those of the sanitizers use it; `dev` does not, so that each source
# is seen to stand alone.
# TESTS: only those of the test binaries, for scripts/mutate, which changes the other sources one at a time.
set(KILN_UNITY OFF CACHE STRING "Compile the sources of a folder together: ON, OFF, or TESTS for those of the tests alone")

# kiln_unite(TARGETS…): does so for the targets named. No two sources of a folder may give a name to different things; a
# source with SKIP_UNITY_BUILD_INCLUSION is compiled by itself. Nothing where KILN_UNITY is off.
function(kiln_unite)
  if(NOT KILN_UNITY)
    return()
  endif()
  foreach(target IN LISTS ARGN)
    if(NOT TARGET ${target})
      continue()  # of a part that is not built
    endif()
    if(KILN_UNITY STREQUAL "TESTS" AND NOT target MATCHES "^kiln_(test_|conformance)")
      continue()
    endif()
    get_target_property(sources ${target} SOURCES)
    get_target_property(folder ${target} SOURCE_DIR)
    foreach(source IN LISTS sources)
      cmake_path(ABSOLUTE_PATH source BASE_DIRECTORY ${folder} OUTPUT_VARIABLE file)
      cmake_path(GET file PARENT_PATH group)
      cmake_path(RELATIVE_PATH group BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
      string(MAKE_C_IDENTIFIER "${group}" group)
      set_source_files_properties(${file} TARGET_DIRECTORY ${target} PROPERTIES UNITY_GROUP ${group})
    endforeach()
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
    target_compile_options(${target} PRIVATE -Wno-shadow $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)  # of names in another file
  endforeach()
endfunction()
