# What leaves the build: one shared library of all layers below the command,
# the tool, the public headers, a CMake package and a pkg-config file.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The library. Its layers are the same objects that the tests link; only the
# names of tc:: and tc_* are visible from outside, so that another Halide or
# protobuf in the caller's process does not meet ours.
get_property(layers GLOBAL PROPERTY TC_LAYERS)
list(REMOVE_ITEM layers tc_cli)
add_library(tensorc_library SHARED)
add_library(tensorc::tensorc ALIAS tensorc_library)
foreach(layer IN LISTS layers)
  get_target_property(type ${layer} TYPE)
  if(type STREQUAL "STATIC_LIBRARY")
    target_sources(tensorc_library PRIVATE $<TARGET_OBJECTS:${layer}>)
  endif()
  get_target_property(external ${layer} TC_EXTERNAL)
  target_link_libraries(tensorc_library PRIVATE ${external})
endforeach()
target_link_libraries(tensorc_library PRIVATE Threads::Threads)
target_include_directories(tensorc_library INTERFACE
  $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
target_compile_features(tensorc_library INTERFACE cxx_std_20)
target_link_libraries(tensorc_library INTERFACE dlpack::dlpack tl::expected)
# Each 0.x may change the ABI (docs/stability.md), so each has a soname of its own.
set(abi_version ${PROJECT_VERSION_MAJOR})
if(PROJECT_VERSION_MAJOR EQUAL 0)
  set(abi_version 0.${PROJECT_VERSION_MINOR})
endif()
set_target_properties(tensorc_library PROPERTIES
  OUTPUT_NAME tensorc EXPORT_NAME tensorc VERSION ${PROJECT_VERSION} SOVERSION ${abi_version}
  LINK_DEPENDS ${PROJECT_SOURCE_DIR}/cmake/tensorc.map)
target_link_options(tensorc_library PRIVATE -Wl,--version-script=${PROJECT_SOURCE_DIR}/cmake/tensorc.map)

# The tool, at the top of the build folder.
add_executable(tensorc tc/cli/main.cc)
target_link_libraries(tensorc PRIVATE tc_cli)
set_target_properties(tensorc PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})

# Installation. scripts/check_layers holds these headers and the programs of users to this list.
set(public_headers
  tc/api/tc.h tc/api/explain.h tc/api/editor.h tc/api/schedule.h tc/api/tc_c.h tc/api/tensor.h tc/api/tune.h tc/tune/executor.h tc/tune/result.h tc/api/dlpack_versioned.h
  tc/options/backend.h tc/options/mapping.h tc/options/options.h tc/options/presets.h tc/support/error.h tc/support/log.h tc/support/scalar_type.h tc/support/source.h)
install(TARGETS tensorc_library EXPORT tensorc)
install(TARGETS tensorc)
foreach(header IN LISTS public_headers)
  cmake_path(GET header PARENT_PATH folder)
  install(FILES ${header} DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/${folder})
endforeach()
install(FILES proto/options.proto DESTINATION ${CMAKE_INSTALL_DATADIR}/tensorc)
install(FILES LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/tensorc)
install(EXPORT tensorc NAMESPACE tensorc:: FILE tensorc-targets.cmake DESTINATION ${package_dir})
configure_package_config_file(cmake/tensorc-config.cmake.in tensorc-config.cmake INSTALL_DESTINATION ${package_dir})
write_basic_package_version_file(tensorc-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/tensorc-config.cmake ${PROJECT_BINARY_DIR}/tensorc-config-version.cmake
        DESTINATION ${package_dir})
file(RELATIVE_PATH pkgconfig_to_prefix /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
configure_file(cmake/tensorc.pc.in tensorc.pc @ONLY)
configure_file(cmake/tensorc-cxx.pc.in tensorc-cxx.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/tensorc.pc ${PROJECT_BINARY_DIR}/tensorc-cxx.pc
        DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
