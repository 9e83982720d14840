# flags.cmake: how every file of ours is compiled. Targets get it by linking rlx_flags.
set(CMAKE_C_STANDARD 11)
set(CMAKE_C_STANDARD_REQUIRED ON)
set(CMAKE_C_EXTENSIONS OFF)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)
if(top_level)
    set(CMAKE_C_FLAGS_RELEASE "-O2 -DNDEBUG")
    set(CMAKE_C_FLAGS_DEBUG "-Og -g3")
    # Where tools/setup puts a library of WebGPU. What is installed forgets it. It must be an RPATH: a
    # RUNPATH is not looked at where a sanitizer opens libraries for us.
    set(CMAKE_BUILD_RPATH ${PROJECT_SOURCE_DIR}/build/webgpu-venv)
    if(NOT APPLE)
        add_link_options(-Wl,--disable-new-dtags)
    endif()
endif()

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)
find_library(MATH_LIBRARY m)
mark_as_advanced(MATH_LIBRARY)

add_library(rlx_flags INTERFACE)
# What is ours may use headers that change with any version; examples say so themselves.
target_compile_definitions(rlx_flags INTERFACE _GNU_SOURCE
    $<$<NOT:$<BOOL:$<TARGET_PROPERTY:RLX_STABLE_HEADERS>>>:RLX_UNSTABLE>)
target_compile_options(rlx_flags INTERFACE
    # One result for one program: no multiply-add unless the code says so.
    -ffp-contract=off -fno-math-errno
    # Nobody asks which exceptions an operation raised; otherwise a ?: stays a branch in loops.
    -fno-trapping-math
    -Wall -Wextra -Wshadow -Wconversion -Wstrict-prototypes -Wmissing-prototypes -Wvla -Wformat=2)
if(RLX_WERROR)
    target_compile_options(rlx_flags INTERFACE -Werror)
endif()

if(RLX_SANITIZE)
    # fuzzer-no-link is for compiling; at the end of the line each fuzz target adds fuzzer itself.
    string(REGEX REPLACE ",?fuzzer-no-link" "" sanitize_link "${RLX_SANITIZE}")
    # Lines for its reports and no more: half the time to compile of what a debugger wants.
    target_compile_options(rlx_flags INTERFACE
        -fsanitize=${RLX_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer -Og -g1)
    target_link_options(rlx_flags INTERFACE -fsanitize=${sanitize_link})
endif()
if(RLX_COVERAGE)
    target_compile_options(rlx_flags INTERFACE --coverage -fprofile-update=atomic -O1)
    target_link_options(rlx_flags INTERFACE --coverage)
endif()

# System libraries, all that rlx ever links with.
set(rlx_system_libraries Threads::Threads ${CMAKE_DL_LIBS})
if(MATH_LIBRARY)
    list(APPEND rlx_system_libraries m)
endif()
