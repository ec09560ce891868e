#pragma once

// Marks a function that the compiler makes in one version per vector width. While it is loaded, the
// program picks the widest that the CPU supports and TPUDIST_CPU allows (cpu_switch.cpp). Off with
// sanitizers, which are not initialised then. A file with such functions is compiled with
// -ffp-contract=off, so that all versions give the same bits. A test that compares the versions
// defines its own mark.
#if defined(TPUDIST_VECTORISED)
#elif defined(__x86_64__) && defined(__linux__) && !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__) && !defined(__clang__)
#define TPUDIST_VECTORISED \
  __attribute__((target_clones("default", "avx2", "avx512f"), optimize("O3")))
#else
#define TPUDIST_VECTORISED
#endif
