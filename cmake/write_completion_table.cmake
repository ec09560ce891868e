# Writes the C++ source OUTPUT with what `PROGRAM completion table` prints. Where the program does not run, the table is
# empty, and completion starts the program instead, which takes longer.
execute_process(COMMAND "${PROGRAM}" completion table OUTPUT_VARIABLE table ERROR_VARIABLE error RESULT_VARIABLE code)
if(NOT code EQUAL 0)
  message(WARNING "completion of shells will be slow: ${PROGRAM} completion table: ${error}")
  set(table "")
endif()
file(WRITE "${OUTPUT}" "#include <string_view>

namespace tpudist {
extern const std::string_view kCompletionTable;
const std::string_view kCompletionTable = R\"table(${table})table\";
}  // namespace tpudist
")
