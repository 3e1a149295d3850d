# cmake -DPROGRAM=... -DMATCHES=REGEX -P check_lines.cmake: runs the program; fails unless its exit
# status is 0 and its standard output matches. For programs whose numbers depend on the moment.
execute_process(COMMAND ${PROGRAM} OUTPUT_VARIABLE printed RESULT_VARIABLE status)
if(NOT status STREQUAL "0")
  message(FATAL_ERROR "${PROGRAM}: exit status ${status}, printed\n${printed}")
endif()
if(NOT printed MATCHES "${MATCHES}")
  message(FATAL_ERROR "${PROGRAM} printed\n${printed}\nwhich does not match ${MATCHES}")
endif()
