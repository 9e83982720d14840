# install.cmake: headers, both libraries, the command, rlx.pc, and a CMake package with rlx::rlx and
# rlx::rlx_static. All of it may be moved after installation: nothing names the prefix.
include(CMakePackageConfigHelpers)

install(DIRECTORY include/rlx DESTINATION ${CMAKE_INSTALL_INCLUDEDIR} FILES_MATCHING PATTERN "*.h")
install(TARGETS rlx_shared rlx_static EXPORT rlx-targets
    LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
    ARCHIVE DESTINATION ${CMAKE_INSTALL_LIBDIR})
if(TARGET rlx-command)
    install(TARGETS rlx-command RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
endif()

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/rlx)
install(EXPORT rlx-targets NAMESPACE rlx:: DESTINATION ${package_dir})
write_basic_package_version_file(${CMAKE_CURRENT_BINARY_DIR}/rlx-config-version.cmake
    COMPATIBILITY ${rlx_compatibility})
install(FILES cmake/rlx-config.cmake ${CMAKE_CURRENT_BINARY_DIR}/rlx-config-version.cmake
    DESTINATION ${package_dir})

# In rlx.pc all paths are relative to where it lies, <prefix>/<libdir>/pkgconfig.
file(RELATIVE_PATH pc_prefix
    /prefix/${CMAKE_INSTALL_LIBDIR}/pkgconfig /prefix)
string(REGEX REPLACE "/$" "" pc_prefix "${pc_prefix}")
configure_file(cmake/rlx.pc.in ${CMAKE_CURRENT_BINARY_DIR}/rlx.pc @ONLY)
install(FILES ${CMAKE_CURRENT_BINARY_DIR}/rlx.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)

function(install_if_there file destination)
    if(EXISTS ${PROJECT_SOURCE_DIR}/${file})
        install(FILES ${PROJECT_SOURCE_DIR}/${file} DESTINATION ${destination} ${ARGN})
    endif()
endfunction()
install_if_there(docs/rlx.1 ${CMAKE_INSTALL_MANDIR}/man1)
install_if_there(docs/completion/rlx.bash ${CMAKE_INSTALL_DATADIR}/bash-completion/completions
    RENAME rlx)
install_if_there(docs/completion/_rlx ${CMAKE_INSTALL_DATADIR}/zsh/site-functions)
install_if_there(docs/completion/rlx.fish ${CMAKE_INSTALL_DATADIR}/fish/vendor_completions.d)
