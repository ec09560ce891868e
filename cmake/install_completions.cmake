# Installs the completions of shells, which the program prints. Run by `cmake --install` with
#
#   completion_program   the program in the build folder
#   completion_data      the folder for data, relative to the prefix

string(LENGTH "$ENV{DESTDIR}" staged)
foreach(completion IN ITEMS bash:bash-completion/completions/tpudist zsh:zsh/site-functions/_tpudist
                            fish:fish/vendor_completions.d/tpudist.fish)
  string(REGEX MATCH "^([a-z]+):(.*)" completion "${completion}")
  set(shell "${CMAKE_MATCH_1}")
  set(file "$ENV{DESTDIR}${CMAKE_INSTALL_PREFIX}/${completion_data}/${CMAKE_MATCH_2}")
  execute_process(COMMAND "${completion_program}" completion ${shell} OUTPUT_VARIABLE script ERROR_VARIABLE error
                  RESULT_VARIABLE code)
  if(NOT code EQUAL 0)
    message(WARNING "no completions: ${completion_program} completion ${shell}: ${error}")
    continue()
  endif()
  message(STATUS "Installing: ${file}")
  file(WRITE "${file}" "${script}")
  file(CHMOD "${file}" PERMISSIONS OWNER_READ OWNER_WRITE GROUP_READ WORLD_READ)
  string(SUBSTRING "${file}" ${staged} -1 file)
  list(APPEND CMAKE_INSTALL_MANIFEST_FILES "${file}")
endforeach()
