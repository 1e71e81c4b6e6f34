# Every library from outside, each behind one target. third_party/README.md
# says why each is here.
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(Protobuf REQUIRED)
find_package(gflags REQUIRED)
find_package(SQLite3 REQUIRED)
find_package(dlpack REQUIRED)
find_package(tl-expected REQUIRED)
# Debian 12's or Debian 13's, each with the LLVM that it is linked with.
find_package(Halide REQUIRED CONFIG COMPONENTS shared)
if(NOT Halide_VERSION MATCHES "^(14|19)\\.")
  message(FATAL_ERROR "Halide ${Halide_VERSION} is found; 14 or 19 is needed")
endif()
set(TC_LLVM_VERSION ${CMAKE_MATCH_1})
find_package(PkgConfig REQUIRED)
pkg_check_modules(ISL REQUIRED IMPORTED_TARGET isl)
pkg_check_modules(GLOG REQUIRED IMPORTED_TARGET libglog)  # Debian's CMake package asks for libunwind's headers

add_library(tc_isl INTERFACE)
target_link_libraries(tc_isl INTERFACE PkgConfig::ISL gmp)
# Debian's libLLVM exports the isl that its Polly was built with, of another version and with other numbers: ours has to
# be found first. Options stand before libraries in a link, so it is the first that is needed.
target_link_options(tc_isl INTERFACE "LINKER:--push-state,--no-as-needed" ${ISL_LINK_LIBRARIES} "LINKER:--pop-state")

# LLVM as Halide links it: the same shared library, found through llvm-config
# because LLVM's CMake package wants every optional library that it was built with.
find_program(TC_LLVM_CONFIG NAMES llvm-config-${TC_LLVM_VERSION} REQUIRED)
execute_process(COMMAND ${TC_LLVM_CONFIG} --includedir OUTPUT_VARIABLE TC_LLVM_INCLUDE OUTPUT_STRIP_TRAILING_WHITESPACE)
execute_process(COMMAND ${TC_LLVM_CONFIG} --libdir OUTPUT_VARIABLE TC_LLVM_LIBDIR OUTPUT_STRIP_TRAILING_WHITESPACE)
add_library(tc_llvm INTERFACE)
target_include_directories(tc_llvm SYSTEM INTERFACE ${TC_LLVM_INCLUDE})
target_link_libraries(tc_llvm INTERFACE ${TC_LLVM_LIBDIR}/libLLVM-${TC_LLVM_VERSION}.so)

# Quadruple precision, for tests: GCC's library. Clang does not look where GCC keeps its header, and may see none of the
# others there.
add_library(tc_quadmath INTERFACE)
target_link_libraries(tc_quadmath INTERFACE quadmath)
if(CMAKE_CXX_COMPILER_ID STREQUAL "Clang")
  execute_process(COMMAND g++ -print-file-name=include OUTPUT_VARIABLE TC_GCC_INCLUDE OUTPUT_STRIP_TRAILING_WHITESPACE)
  target_compile_options(tc_quadmath INTERFACE "SHELL:-idirafter ${TC_GCC_INCLUDE}")
endif()

# The allocator of tests, where it is installed: isl makes and frees small objects all the time. Sanitizers have their own,
# and the library leaves the choice to the program that it is in.
add_library(tc_allocator INTERFACE)
pkg_check_modules(JEMALLOC QUIET jemalloc)
if(JEMALLOC_FOUND AND NOT TC_SANITIZE)
  target_link_options(tc_allocator INTERFACE
    "LINKER:--push-state,--no-as-needed" ${JEMALLOC_LINK_LIBRARIES} "LINKER:--pop-state")
endif()

# The protobuf messages of proto/.
file(GLOB TC_PROTOS CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/proto/*.proto)
add_library(tc_proto STATIC ${TC_PROTOS})
target_include_directories(tc_proto PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_BINARY_DIR}>)
target_link_libraries(tc_proto PUBLIC protobuf::libprotobuf)
protobuf_generate(TARGET tc_proto LANGUAGE cpp IMPORT_DIRS ${CMAKE_CURRENT_SOURCE_DIR}/proto
                  PROTOC_OUT_DIR ${CMAKE_CURRENT_BINARY_DIR}/proto)
target_include_directories(tc_proto SYSTEM PUBLIC $<BUILD_INTERFACE:${CMAKE_CURRENT_BINARY_DIR}/proto>)
target_compile_options(tc_proto PRIVATE -w)
