# Installs the manual pages and the completions of shells, which the program writes of its own help. Run by
# `cmake --install` with
#
#   manual_program                 the program in the build folder
#   manual_data, manual_pages      folders for data and for manual pages, relative to the prefix

set(prefix "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}")

# Runs the program with the arguments after `output`; what it prints goes to `output`.
function(run_program output)
  execute_process(COMMAND "${manual_program}" ${ARGN} OUTPUT_VARIABLE text ERROR_VARIABLE error
                  RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(WARNING "no manual pages or completions: ${manual_program} ${ARGN}: ${error}")
  endif()
  set(${output} "${text}" PARENT_SCOPE)
endfunction()

run_program(pages man --dir "${prefix}/${manual_pages}/man1")
string(REGEX MATCHALL "[^\n]+" pages "${pages}")
foreach(completion IN ITEMS bash:bash-completion/completions/tpudist zsh:zsh/site-functions/_tpudist
                            fish:fish/vendor_completions.d/tpudist.fish)
  string(REGEX MATCH "^([a-z]+):(.*)" completion "${completion}")
  set(shell "${CMAKE_MATCH_1}")
  set(file "${prefix}/${manual_data}/${CMAKE_MATCH_2}")
  run_program(script completion ${shell})
  if(script)
    message(STATUS "Installing: ${file}")
    file(WRITE "${file}" "${script}")
    list(APPEND pages "${file}")
  endif()
endforeach()
string(LENGTH "$ENV{DESTDIR}" staged)
foreach(page IN LISTS pages)
  file(CHMOD "${page}" PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  string(SUBSTRING "${page}" ${staged} -1 page)
  list(APPEND CMAKE_INSTALL_MANIFEST_FILES "${page}")
endforeach()
