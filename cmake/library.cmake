# library.cmake: the object sets, and the two libraries made of them.
#
# The CPU kernels are compiled once per instruction set. CPU_ISA is part of the names they define;
# RLX_HAVE_<LEVEL> tells the dispatcher which levels beyond baseline are in this build.
file(GLOB_RECURSE library_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/*.c)
file(GLOB_RECURSE kernel_sources CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/backend/cpu/kernels/*.c)
list(FILTER library_sources EXCLUDE REGEX "/src/backend/cpu/kernels/.*\\.c$")

# Drivers of GPUs are found at run time; what they look like is in the tree.
set(rlx_interfaces ${PROJECT_SOURCE_DIR}/third_party/vulkan ${PROJECT_SOURCE_DIR}/third_party/webgpu)

function(rlx_library_target target)
    target_link_libraries(${target} PRIVATE rlx_flags)
    target_include_directories(${target} PRIVATE
        ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR}/src)
endfunction()

file(GLOB_RECURSE rlk_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/kernels/*.rlk)
set(embedded ${CMAKE_CURRENT_BINARY_DIR}/embedded_kernels.c)
add_custom_command(
    OUTPUT ${embedded}
    COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR}/kernels -DOUT=${embedded}
            -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    DEPENDS ${rlk_files} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
    COMMENT "Embedding kernels" VERBATIM)
file(GLOB page_files CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/src/inspect/page/*)
set(embedded_page ${CMAKE_CURRENT_BINARY_DIR}/embedded_page.c)
add_custom_command(
    OUTPUT ${embedded_page}
    COMMAND ${CMAKE_COMMAND} -DROOT=${PROJECT_SOURCE_DIR}/src/inspect/page -DOUT=${embedded_page}
            -P ${PROJECT_SOURCE_DIR}/cmake/embed_page.cmake
    DEPENDS ${page_files} ${PROJECT_SOURCE_DIR}/cmake/embed_page.cmake
    COMMENT "Embedding the page" VERBATIM)
add_library(rlx_core OBJECT ${library_sources} ${embedded} ${embedded_page})
rlx_library_target(rlx_core)
target_include_directories(rlx_core SYSTEM PRIVATE ${rlx_interfaces})
set(rlx_objects $<TARGET_OBJECTS:rlx_core>)

set(levels baseline)
set(flags_baseline "")
string(TOLOWER "${CMAKE_SYSTEM_PROCESSOR}" processor)
if(processor MATCHES "^(x86_64|amd64)$")
    list(APPEND levels avx2 avx512)
    set(flags_avx2 -mavx2 -mfma -mf16c -mbmi2)
    set(flags_avx512 -mavx512f -mavx512bw -mavx512dq -mavx512vl -mavx512vnni
        -mfma -mf16c -mbmi2 -mprefer-vector-width=512)
elseif(processor MATCHES "^(aarch64|arm64)$")
    list(APPEND levels neon)
    set(flags_neon -march=armv8.2-a+fp16+dotprod)
endif()

if(RLX_BASELINE_ONLY)
    set(levels baseline)
endif()

foreach(level IN LISTS levels)
    if(NOT level STREQUAL baseline)
        string(REPLACE ";" " " probe "${flags_${level}}")
        check_c_compiler_flag("${probe}" RLX_COMPILER_HAS_${level})
        if(NOT RLX_COMPILER_HAS_${level})
            message(STATUS "rlx: the compiler has no ${probe}: no ${level} kernels")
            continue()
        endif()
        string(TOUPPER ${level} upper)
        target_compile_definitions(rlx_core PRIVATE RLX_HAVE_${upper})
    endif()
    if(NOT kernel_sources)
        continue()
    endif()
    add_library(rlx_kernels_${level} OBJECT ${kernel_sources})
    rlx_library_target(rlx_kernels_${level})
    target_compile_definitions(rlx_kernels_${level} PRIVATE CPU_ISA=${level})
    target_compile_options(rlx_kernels_${level} PRIVATE ${flags_${level}})
    if(NOT RLX_SANITIZE AND NOT RLX_COVERAGE)
        target_compile_options(rlx_kernels_${level} PRIVATE $<$<CONFIG:Release>:-O3>)
    endif()
    # gcc stores 64 bytes aligned into frames that its own address sanitizer aligns to 32 when it
    # moves them off the stack, as it does to see uses after return.
    if(level STREQUAL avx512 AND RLX_SANITIZE MATCHES address AND CMAKE_C_COMPILER_ID STREQUAL GNU)
        target_compile_options(rlx_kernels_${level} PRIVATE --param=asan-use-after-return=0)
    endif()
    list(APPEND rlx_objects $<TARGET_OBJECTS:rlx_kernels_${level}>)
endforeach()

add_library(rlx_shared SHARED ${rlx_objects})
set_target_properties(rlx_shared PROPERTIES
    OUTPUT_NAME rlx EXPORT_NAME rlx LINKER_LANGUAGE C
    VERSION ${PROJECT_VERSION} SOVERSION ${rlx_soversion})
target_link_libraries(rlx_shared PRIVATE $<BUILD_INTERFACE:rlx_flags> ${rlx_system_libraries})
if(NOT RLX_SANITIZE AND NOT APPLE)
    target_link_options(rlx_shared PRIVATE -Wl,--no-undefined)
endif()

# For the archive, join all objects into one and make what is hidden local to it, so that a program
# linked with librlx.a can use any name that is not rlx_. Sanitized objects are left as they are.
if(CMAKE_OBJCOPY AND CMAKE_LINKER AND NOT APPLE AND NOT RLX_SANITIZE AND NOT RLX_COVERAGE)
    set(merged ${CMAKE_CURRENT_BINARY_DIR}/rlx-merged.o)
    add_custom_command(
        OUTPUT ${merged}
        COMMAND ${CMAKE_LINKER} -r -o ${merged} ${rlx_objects}
        COMMAND ${CMAKE_OBJCOPY} --localize-hidden ${merged}
        DEPENDS ${rlx_objects}
        COMMENT "Merging the library into one object"
        COMMAND_EXPAND_LISTS VERBATIM)
    add_library(rlx_static STATIC ${merged})
    set_source_files_properties(${merged} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
else()
    add_library(rlx_static STATIC ${rlx_objects})
endif()
set_target_properties(rlx_static PROPERTIES OUTPUT_NAME rlx LINKER_LANGUAGE C)
target_link_libraries(rlx_static PUBLIC ${rlx_system_libraries})

foreach(target rlx_shared rlx_static)
    target_include_directories(${target} PUBLIC
        $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/include>
        $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
endforeach()
add_library(rlx::rlx ALIAS rlx_shared)
add_library(rlx::rlx_static ALIAS rlx_static)
