#!/usr/bin/env bash
# Packs tpudist, the programs that check it on a GPU, and the libraries that they need, into FOLDER and into
# FOLDER.tar.gz of at most 60 MB. The other machine needs a GPU and the wheel of torch 2.11, which brings LibTorch.
# With mpirun, for ranks on that machine alone.
#
#   scripts/gpu_bundle.sh FOLDER [PROGRAM ...]     programs beside tpudist, by default those of bench/ and the GPU tests
#
# On that machine:  . FOLDER/environment.sh && tpudist doctor
#
# TPUDIST_BUILD  the build folder; default build/release of the repository
set -euo pipefail
(( $# >= 1 )) || { sed -n '2,10p' "${BASH_SOURCE[0]}" >&2; exit 2; }
root=$(realpath "$(dirname "${BASH_SOURCE[0]}")/..")
bundle=$(realpath -m "$1"); shift
build=${TPUDIST_BUILD:-$root/build/release}
programs=("$build/tpudist" "$build/tpudist-train" "$(type -P mpirun)" "$@")
if (( $# == 0 )); then
  programs+=("$build"/bench/{kernel_check,nccl_check,device_check} "$build/tests/dist/dist_mpi_test"
    "$build"/tests/models/{layers/models_layers_test,operators/models_operators_gpu_test})
fi

mkdir -p "$bundle/bin" "$bundle/lib"
for program in "${programs[@]}"; do
  strip -o "$bundle/bin/$(basename "$program")" "$(realpath "$program")"
done

# The libraries that the programs and Open MPI's plugins are linked to; not those of the C and C++ compilers, of
# LibTorch and of CUDA, which the other machine has.
plugins=$(dirname "$(find /usr/lib /usr/local/lib -name mca_btl_self.so 2> /dev/null | head -n 1)")
mkdir -p "$bundle"/lib/{openmpi,pmix}
find "$plugins" -name 'mca_*.so' | grep -vE '_(ofi|openib|psm|psm2|ucx|flux|jsm|romio321|gridengine|monitoring)\.so|/mca_(spml|sshmem|memheap|scoll)_' \
  | xargs cp -t "$bundle/lib/openmpi"
find /usr/lib /usr/local/lib -name 'pmix_mca_*.so' ! -name '*_slurm.so' 2> /dev/null | xargs -r cp -t "$bundle/lib/pmix"
share=$(dirname "$(find /usr/share -name help-mpi-runtime.txt 2> /dev/null | head -n 1)")
mkdir -p "$bundle/share" && cp -r "$share" "$bundle/share/openmpi"
find "$bundle/bin" "$bundle/lib" -type f -exec ldd {} + | awk '$2 == "=>" && $3 ~ /^\// {print $3}' | sort -u \
  | grep -vE '/(libc|libm|libdl|librt|libpthread|libutil|libresolv|libgcc_s|libstdc\+\+|libgomp|libcuda|libtorch[^/]*|libc10[^/]*|libshm|libcu(blas|blasLt|dart|dnn|fft|file|pti|rand|solver|sparse)[^/]*|libnv[a-zA-Z]+|libnccl)\.so' \
  | grep -v '/site-packages/' | while read -r library; do cp -L "$library" "$bundle/lib/"; done
strip --strip-unneeded "$bundle"/lib/*.so* 2> /dev/null || true
cp -r "$root/experiments" "$bundle/"

cat > "$bundle/environment.sh" << 'TEXT'
# Source it: puts tpudist, its libraries and the LibTorch of python3's torch on the paths.
tpudist_bundle=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
tpudist_site=$(python3 -c 'import pathlib, torch; print(pathlib.Path(torch.__file__).parent.parent)')
export PATH=$tpudist_bundle/bin:$PATH OPAL_PREFIX=$tpudist_bundle
export OMPI_MCA_mca_base_component_path=$tpudist_bundle/lib/openmpi OMPI_MCA_ess_singleton_isolated=1
export PMIX_MCA_mca_base_component_path=$tpudist_bundle/lib/pmix
export LD_LIBRARY_PATH=$tpudist_bundle/lib:$tpudist_site/torch/lib$(printf ':%s' "$tpudist_site"/nvidia/*/lib):${LD_LIBRARY_PATH:-}
TEXT
tar -C "$(dirname "$bundle")" -czf "$bundle.tar.gz.tmp" "$(basename "$bundle")"
mv "$bundle.tar.gz.tmp" "$bundle.tar.gz"
bytes=$(stat -c %s "$bundle.tar.gz")
echo "$bundle.tar.gz: $((bytes / 1000000)) MB"
(( bytes <= 60000000 )) || { echo "gpu_bundle: more than 60 MB" >&2; exit 1; }
