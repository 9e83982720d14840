# programs.cmake: the rlx command, the tests, and one executable per file of examples/ and bench/,
# and the fuzzers. All but the tests see include/ only. What the programs of
# bench/ share is in bench/support/.

# rlx_programs(FOLDER): every FOLDER/*.c becomes a program in the build's FOLDER.
function(rlx_programs folder)
    file(GLOB sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/${folder}/*.c)
    foreach(source IN LISTS sources)
        get_filename_component(name ${source} NAME_WE)
        set(target ${folder}-${name})
        add_executable(${target} ${source})
        target_link_libraries(${target} PRIVATE rlx_flags rlx_static)
        set_target_properties(${target} PROPERTIES
            OUTPUT_NAME ${name} RUNTIME_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/${folder})
        if(folder STREQUAL "examples")
            set_target_properties(${target} PROPERTIES RLX_STABLE_HEADERS ON)
        endif()
        set_property(GLOBAL APPEND PROPERTY rlx_targets_of_${folder} ${target})
    endforeach()
endfunction()

file(GLOB cli_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/cli/*.c)
if(cli_sources)
    add_executable(rlx-command ${cli_sources})
    set_target_properties(rlx-command PROPERTIES OUTPUT_NAME rlx)
    target_include_directories(rlx-command PRIVATE ${PROJECT_SOURCE_DIR}/cli)
    target_link_libraries(rlx-command PRIVATE rlx_flags rlx_static)
endif()

if(RLX_BUILD_EXAMPLES)
    rlx_programs(examples)
endif()

file(GLOB bench_support CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/bench/support/*.c)
if(RLX_BUILD_BENCH)
    add_library(rlx_bench_support STATIC ${bench_support})
    target_link_libraries(rlx_bench_support PUBLIC rlx_flags rlx_static)
    rlx_programs(bench)
    get_property(bench_targets GLOBAL PROPERTY rlx_targets_of_bench)
    foreach(target IN LISTS bench_targets)
        target_link_libraries(${target} PRIVATE rlx_bench_support)
    endforeach()
endif()

if(RLX_BUILD_FUZZ)
    # One program for all targets: each would be as large. It is libFuzzer's where the compiler has
    # that and the library is instrumented for it, with libstdc++ inside, so that it runs on other
    # machines too; else our own driver's.
    file(GLOB fuzz_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/fuzz/*.c)
    set(libfuzzer OFF)
    if(CMAKE_C_COMPILER_ID MATCHES "Clang" AND RLX_SANITIZE MATCHES "fuzzer-no-link")
        set(libfuzzer ON)
        list(FILTER fuzz_sources EXCLUDE REGEX "/fuzz/driver\\.c$")
    endif()
    add_executable(rlx-fuzz ${fuzz_sources})
    target_link_libraries(rlx-fuzz PRIVATE rlx_flags rlx_static)
    if(libfuzzer)
        target_link_options(rlx-fuzz PRIVATE -fsanitize=fuzzer -nostdlib++ -static-libgcc)
        target_link_libraries(rlx-fuzz PRIVATE -l:libstdc++.a)
    endif()
endif()

if(RLX_BUILD_TESTS)
    enable_testing()
    file(GLOB_RECURSE test_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/*.c)
    # Programs of their own, and libraries that tests open.
    list(FILTER test_sources EXCLUDE REGEX "/tests/(random|fakes|abi|tiny)/")
    # The networks that are timed are checked as well.
    add_executable(rlx-tests ${test_sources} ${rlx_objects}
        ${PROJECT_SOURCE_DIR}/bench/support/models.c ${PROJECT_SOURCE_DIR}/bench/support/values.c)
    target_link_libraries(rlx-tests PRIVATE rlx_flags ${rlx_system_libraries})
    target_include_directories(rlx-tests PRIVATE
        ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/tests)
    target_include_directories(rlx-tests SYSTEM PRIVATE ${rlx_interfaces})
    # Only this file is given the path of the tree: the others compile alike in every checkout, which
    # compiler cache thanks us for.
    set_source_files_properties(${PROJECT_SOURCE_DIR}/tests/test_main.c PROPERTIES COMPILE_DEFINITIONS
        "RLX_SOURCE_DIR=\"${PROJECT_SOURCE_DIR}\";RLX_BUILD_DIR=\"${CMAKE_CURRENT_BINARY_DIR}\"")
    if(TARGET rlx-command)
        add_dependencies(rlx-tests rlx-command) # tests run it
    endif()
    # Libraries that tests have opened instead of drivers.
    file(GLOB fake_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/fakes/*.c)
    foreach(source IN LISTS fake_sources)
        get_filename_component(name ${source} NAME_WE)
        add_library(fake-${name} MODULE ${source})
        target_compile_options(fake-${name} PRIVATE -Wall -Wextra)
        target_include_directories(fake-${name} SYSTEM PRIVATE ${rlx_interfaces})
        set_target_properties(fake-${name} PROPERTIES PREFIX "" OUTPUT_NAME ${name}
            C_VISIBILITY_PRESET default LIBRARY_OUTPUT_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/fakes)
        add_dependencies(rlx-tests fake-${name})
    endforeach()
    add_test(NAME rlx-tests COMMAND rlx-tests)

    add_executable(rlx-tiny-model ${PROJECT_SOURCE_DIR}/tests/tiny/main.c
        ${PROJECT_SOURCE_DIR}/tests/llm/tiny_model.c ${rlx_objects})
    target_link_libraries(rlx-tiny-model PRIVATE rlx_flags ${rlx_system_libraries})
    target_include_directories(rlx-tiny-model PRIVATE
        ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/tests)

    file(GLOB random_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/random/*.c)
    add_executable(rlx-random ${random_sources} ${rlx_objects})
    target_link_libraries(rlx-random PRIVATE rlx_flags ${rlx_system_libraries})
    target_include_directories(rlx-random PRIVATE
        ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
endif()
