# The page of `kiln report`, one file made of our own HTML, style and scripts and of Chart.js as the distribution has it. It
# stands beside the command in the build as it does where it is installed.
set(kiln_report_page ${PROJECT_BINARY_DIR}/share/kiln/report/page.html)
set(kiln_page_dir ${CMAKE_CURRENT_SOURCE_DIR}/page)
set(kiln_page_scripts ${kiln_page_dir}/charts.js ${kiln_page_dir}/sections.js ${kiln_page_dir}/page.js)
if(KILN_CHART_JS)
  string(REPLACE ";" "," scripts "${kiln_page_scripts}")
  add_custom_command(OUTPUT ${kiln_report_page}
    COMMAND ${CMAKE_COMMAND} -D PAGE=${kiln_page_dir}/page.html -D STYLE=${kiln_page_dir}/page.css -D CHART=${KILN_CHART_JS}
      -D SCRIPTS=${scripts} -D OUTPUT=${kiln_report_page} -P ${kiln_page_dir}/assemble.cmake
    DEPENDS ${kiln_page_dir}/page.html ${kiln_page_dir}/page.css ${kiln_page_dir}/assemble.cmake ${KILN_CHART_JS} ${kiln_page_scripts}
    VERBATIM)
  add_custom_target(kiln_report_page ALL DEPENDS ${kiln_report_page})
  add_dependencies(kiln kiln_report_page)
  install(FILES ${kiln_report_page} DESTINATION share/kiln/report)
else()
  message(STATUS "kiln report will make no pages: Chart.js (libjs-chart.js) is not installed")
endif()
