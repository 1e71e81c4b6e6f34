set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
# A layer's files are compiled while those of the layers above it still are.
set(CMAKE_OPTIMIZE_DEPENDENCIES ON)
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()

option(TC_BUILD_TESTS "Build the tests" ON)
option(TC_BUILD_FUZZERS "Build the libFuzzer targets (Clang only)" OFF)
option(TC_BUILD_BENCHMARKS "Build the benchmarks" OFF)
option(TC_BUILD_PYTHON "Build the Python package, for the Python of Python_EXECUTABLE" OFF)
option(TC_WARNINGS_AS_ERRORS "Fail on warnings" ON)
set(TC_UNITY 0 CACHE STRING "The most source files that are compiled as one (0: each alone)")
set(TC_SANITIZE "" CACHE STRING "Sanitizers to build with, as -fsanitize= takes them (address,undefined or thread)")

# GCC 12 reports two faults in the library's own code where it inlines it: -Wrestrict in char* + std::string
# (bug 105651), -Wstringop-overflow in the growth of a std::vector, whose size it takes to be able to wrap.
add_compile_options(-Wall -Wextra "$<$<CXX_COMPILER_ID:GNU>:-Wno-restrict;-Wno-stringop-overflow>")
if(TC_WARNINGS_AS_ERRORS)
  add_compile_options(-Werror)
endif()
# Messages name a source file from this folder on: a library tells nothing of the machine that built it.
add_compile_options("-fmacro-prefix-map=${PROJECT_SOURCE_DIR}/=")
if(TC_SANITIZE)
  add_compile_options(-fsanitize=${TC_SANITIZE} -fno-omit-frame-pointer -g1)
  add_link_options(-fsanitize=${TC_SANITIZE})
  # What undefined behaviour is found must end the program, or no test would notice.
  add_compile_options(-fno-sanitize-recover=all)
endif()
if(TC_BUILD_FUZZERS)
  add_compile_options(-fsanitize=fuzzer-no-link)
endif()
