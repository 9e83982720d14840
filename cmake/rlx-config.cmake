# find_package(rlx) gives rlx::rlx (shared) and rlx::rlx_static.
include(CMakeFindDependencyMacro)
set(THREADS_PREFER_PTHREAD_FLAG ON)
find_dependency(Threads)
include(${CMAKE_CURRENT_LIST_DIR}/rlx-targets.cmake)
