# cmake -DPROGRAM=... -DPRINTS=FILE -P check_output.cmake: runs the program; fails unless its exit
# status is 0 and its standard output is the text of the file.
execute_process(COMMAND ${PROGRAM} OUTPUT_VARIABLE printed RESULT_VARIABLE status)
file(READ ${PRINTS} expected)
if(NOT status STREQUAL "0")
  message(FATAL_ERROR "${PROGRAM}: exit status ${status}")
endif()
if(NOT printed STREQUAL expected)
  message(FATAL_ERROR "${PROGRAM} printed\n${printed}\ninstead of\n${expected}")
endif()
