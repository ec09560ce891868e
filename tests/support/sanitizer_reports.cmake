# The reports of sanitizers that tests left (cmake/TpudistSanitizerReports.cmake).
#
#   cmake -DFOLDER=<folder> -DTASK=remove -P sanitizer_reports.cmake    makes the folder, empty
#   cmake -DFOLDER=<folder> -DTASK=check -P sanitizer_reports.cmake     prints all that is in it; fails if there is any

if(TASK STREQUAL "remove")
  file(REMOVE_RECURSE "${FOLDER}")
  file(MAKE_DIRECTORY "${FOLDER}")
  return()
endif()

file(GLOB reports "${FOLDER}/*")
foreach(report IN LISTS reports)
  file(READ "${report}" text)
  message("${report}\n${text}")
endforeach()
list(LENGTH reports count)
if(count GREATER 0)
  message(FATAL_ERROR "${count} processes have a report of a sanitizer.")
endif()
if(NOT IS_DIRECTORY "${FOLDER}")
  message(FATAL_ERROR "${FOLDER} is gone: nobody knows whether there were reports.")
endif()
