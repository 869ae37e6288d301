# What a page of `kiln report` has in it beside its data: our own style and scripts, and Chart.js as the distribution has it.
# They lie beside the command in the build as they do where it is installed.
set(kiln_report_assets page.css palette.js marks.js charts.js page.js)
set(kiln_report_dir ${PROJECT_BINARY_DIR}/share/kiln/report)
set(kiln_report_sources ${kiln_report_assets})
list(TRANSFORM kiln_report_sources PREPEND ${CMAKE_CURRENT_SOURCE_DIR}/page/assets/)
if(KILN_CHART_JS)
  list(APPEND kiln_report_sources ${KILN_CHART_JS})
else()
  message(STATUS "kiln report will make no pages: Chart.js (libjs-chart.js) is not installed")
endif()
set(kiln_report_copies)
foreach(source IN LISTS kiln_report_sources)
  cmake_path(GET source FILENAME name)
  add_custom_command(OUTPUT ${kiln_report_dir}/${name}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${kiln_report_dir}
    COMMAND ${CMAKE_COMMAND} -E copy ${source} ${kiln_report_dir}/${name}
    DEPENDS ${source} VERBATIM)
  list(APPEND kiln_report_copies ${kiln_report_dir}/${name})
endforeach()
add_custom_target(kiln_report_assets ALL DEPENDS ${kiln_report_copies})
add_dependencies(kiln kiln_report_assets)
install(FILES ${kiln_report_sources} DESTINATION share/kiln/report)
