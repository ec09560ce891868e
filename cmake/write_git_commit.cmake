# Writes OUTPUT, a header that defines TPUDIST_GIT_COMMIT: the commit of the checkout SOURCE, with
# "-modified" where files differ from it, or "" where SOURCE is no checkout of its own (an unpacked
# archive). It runs with every build and leaves the file alone when the commit is the same.
#
#   cmake -DSOURCE=<folder> -DOUTPUT=<file> -P write_git_commit.cmake

set(commit "")
find_program(GIT_PROGRAM git)
if(GIT_PROGRAM AND EXISTS "${SOURCE}/.git")
  execute_process(
    COMMAND "${GIT_PROGRAM}" describe --always --exclude "*" --abbrev=12 --dirty=-modified
    WORKING_DIRECTORY "${SOURCE}" OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()

set(text "#define TPUDIST_GIT_COMMIT \"${commit}\"\n")
set(before "")
if(EXISTS "${OUTPUT}")
  file(READ "${OUTPUT}" before)
endif()
if(NOT text STREQUAL before)
  file(WRITE "${OUTPUT}" "${text}")
endif()
