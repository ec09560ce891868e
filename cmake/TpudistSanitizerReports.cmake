# Tests of a build with TPUDIST_SANITIZE. Every process that a test starts, directly or by mpirun or a shell,
# writes what the sanitizers find into files of its own: a test may ignore the exit code and the output of
# a child that it kills. The fixture of all tests removes these files before the first test and fails
# after the last one if there are any, with what they say.
#
# Sets TPUDIST_TEST_SLOWNESS, TPUDIST_TEST_FIXTURE and adds to TPUDIST_TEST_ENVIRONMENT.

set(TPUDIST_TEST_SLOWNESS 5)
set(TPUDIST_TEST_FIXTURE sanitizer_reports)

set(reports "${PROJECT_BINARY_DIR}/sanitizer_reports")
set(support "${PROJECT_SOURCE_DIR}/tests/support")
# No program of this project ends with exit code 99.
set(common "log_path=${reports}/report:log_exe_name=1:exitcode=99:print_suppressions=0")
# verify_asan_link_order: some tests load tpudist_faulty_io before all else, which takes no memory by itself.
# intercept_tls_get_addr: up to GCC 13 the runtime takes some blocks of thread-local variables of shared
# libraries for those of an old C library, and LeakSanitizer may crash ("Tracer caught signal 11").
list(APPEND TPUDIST_TEST_ENVIRONMENT
  "ASAN_OPTIONS=${common}:detect_stack_use_after_return=1:strict_string_checks=1:verify_asan_link_order=0:intercept_tls_get_addr=0"
  "LSAN_OPTIONS=suppressions=${support}/lsan.supp:print_suppressions=0"
  "TSAN_OPTIONS=${common}:suppressions=${support}/tsan.supp:second_deadlock_stack=1"
  "UBSAN_OPTIONS=${common}:print_stacktrace=1")

foreach(task remove check)
  add_test(NAME sanitizer_reports/${task}
    COMMAND "${CMAKE_COMMAND}" -DFOLDER=${reports} -DTASK=${task} -P "${support}/sanitizer_reports.cmake")
endforeach()
set_tests_properties(sanitizer_reports/remove PROPERTIES FIXTURES_SETUP ${TPUDIST_TEST_FIXTURE})
set_tests_properties(sanitizer_reports/check PROPERTIES FIXTURES_CLEANUP ${TPUDIST_TEST_FIXTURE})
