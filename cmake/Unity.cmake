# tc_unity(target source...)
# Compiles sources of the target as one file, up to TC_UNITY of them, where unity_groups finds that they fit: headers and
# templates are then compiled once for all. The groups are found when CMake configures.
if(TC_UNITY)
  find_program(TC_UNITY_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH REQUIRED)
endif()
function(tc_unity target)
  if(NOT TC_UNITY OR NOT ARGN)
    return()
  endif()
  execute_process(
    COMMAND ${TC_UNITY_PYTHON} ${PROJECT_SOURCE_DIR}/cmake/unity_groups ${PROJECT_SOURCE_DIR} ${TC_UNITY} ${ARGN}
    OUTPUT_VARIABLE lines OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
  string(REPLACE "\n" ";" lines "${lines}")
  foreach(line IN LISTS lines)
    string(REGEX MATCH "^([0-9]+) (.*)$" line "${line}")
    set_source_files_properties("${CMAKE_MATCH_2}" PROPERTIES UNITY_GROUP "${target}_${CMAKE_MATCH_1}")
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()
