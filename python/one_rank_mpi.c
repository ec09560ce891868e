// A libmpi.so.40 of one rank, for the program of the wheel on a machine without MPI: what tpudist calls of it, under the
// names that the headers of Open MPI 4 and 5 give. With one rank collectives have nothing to move, and a message to
// another rank ends the program. tests/install/wheel_test.sh checks that no function is missing.
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifndef OPEN_MPI
#error "these are the names of Open MPI"
#endif
#pragma GCC diagnostic ignored "-Wunused-parameter"

// What the handles point to. Only the addresses count.
struct ompi_predefined_communicator_t { char nothing; } ompi_mpi_comm_world, ompi_mpi_comm_null;
struct ompi_predefined_request_t { char nothing; } ompi_request_null;
struct ompi_predefined_info_t { char nothing; } ompi_mpi_info_null;
struct ompi_predefined_errhandler_t { char nothing; } ompi_mpi_errors_return;
struct ompi_predefined_op_t { char nothing; } ompi_mpi_op_max, ompi_mpi_op_min, ompi_mpi_op_sum;
struct ompi_predefined_datatype_t { char nothing; } ompi_mpi_byte, ompi_mpi_char, ompi_mpi_double, ompi_mpi_float,
    ompi_mpi_int64_t;

static int initialized, finalized, level;

static int no_messages(const char* function) {
  fprintf(stderr, "tpudist: error: %s in a process without MPI\n", function);
  _Exit(1);
}

static int other_comm(MPI_Comm* comm) {
  *comm = MPI_COMM_WORLD;
  return MPI_SUCCESS;
}

int MPI_Init_thread(int* argc, char*** argv, int required, int* provided) {
  initialized = 1;
  *provided = level = required;
  return MPI_SUCCESS;
}
int MPI_Finalize(void) {
  finalized = 1;
  return MPI_SUCCESS;
}
int MPI_Initialized(int* flag) {
  *flag = initialized;
  return MPI_SUCCESS;
}
int MPI_Finalized(int* flag) {
  *flag = finalized;
  return MPI_SUCCESS;
}
int MPI_Query_thread(int* provided) {
  *provided = level;
  return MPI_SUCCESS;
}
int MPI_Abort(MPI_Comm comm, int code) { _Exit(code); }

int MPI_Get_library_version(char* version, int* length) {
  *length = snprintf(version, MPI_MAX_LIBRARY_VERSION_STRING, "none found: a single process");
  return MPI_SUCCESS;
}
int MPI_Error_string(int code, char* text, int* length) {
  *length = snprintf(text, MPI_MAX_ERROR_STRING, "error %d", code);
  return MPI_SUCCESS;
}

int MPI_Comm_rank(MPI_Comm comm, int* rank) {
  *rank = 0;
  return MPI_SUCCESS;
}
int MPI_Comm_size(MPI_Comm comm, int* size) {
  *size = 1;
  return MPI_SUCCESS;
}
int MPI_Comm_dup(MPI_Comm comm, MPI_Comm* copy) { return other_comm(copy); }
int MPI_Comm_split(MPI_Comm comm, int color, int key, MPI_Comm* part) { return other_comm(part); }
int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm* part) { return other_comm(part); }
int MPI_Comm_free(MPI_Comm* comm) {
  *comm = MPI_COMM_NULL;
  return MPI_SUCCESS;
}
int MPI_Comm_set_errhandler(MPI_Comm comm, MPI_Errhandler handler) { return MPI_SUCCESS; }

// The program gives MPI_IN_PLACE to those that could move something.
int MPI_Barrier(MPI_Comm comm) { return MPI_SUCCESS; }
int MPI_Ibarrier(MPI_Comm comm, MPI_Request* request) {
  *request = MPI_REQUEST_NULL;
  return MPI_SUCCESS;
}
int MPI_Bcast(void* data, int count, MPI_Datatype type, int root, MPI_Comm comm) { return MPI_SUCCESS; }
int MPI_Allreduce(const void* send, void* receive, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm) {
  return send == MPI_IN_PLACE ? MPI_SUCCESS : no_messages("MPI_Allreduce");
}
int MPI_Allgatherv(const void* send, int count, MPI_Datatype send_type, void* receive, const int* counts,
                   const int* offsets, MPI_Datatype type, MPI_Comm comm) {
  return send == MPI_IN_PLACE ? MPI_SUCCESS : no_messages("MPI_Allgatherv");
}

int MPI_Test(MPI_Request* request, int* flag, MPI_Status* status) {
  *flag = 1;
  return MPI_SUCCESS;
}
int MPI_Testall(int count, MPI_Request* requests, int* flag, MPI_Status* statuses) {
  *flag = 1;
  return MPI_SUCCESS;
}
int MPI_Waitall(int count, MPI_Request* requests, MPI_Status* statuses) { return MPI_SUCCESS; }
int MPI_Iprobe(int source, int tag, MPI_Comm comm, int* flag, MPI_Status* status) {
  *flag = 0;
  return MPI_SUCCESS;
}
int MPI_Isend(const void* data, int count, MPI_Datatype type, int to, int tag, MPI_Comm comm, MPI_Request* request) {
  return no_messages("MPI_Isend");
}
int MPI_Irecv(void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Request* request) {
  return no_messages("MPI_Irecv");
}
int MPI_Recv(void* data, int count, MPI_Datatype type, int from, int tag, MPI_Comm comm, MPI_Status* status) {
  return no_messages("MPI_Recv");
}
int MPI_Get_count(const MPI_Status* status, MPI_Datatype type, int* count) { return no_messages("MPI_Get_count"); }
