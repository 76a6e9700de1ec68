// The queries of another language's binding, in a job of one rank: sizes, truth values, handles as
// integers. Prints "rank 0: ok", or what was wrong.
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#include "ferry/mpi/mpi.h"

namespace {

int failures = 0;

void Check(bool good, int line) {
  if (!good) {
    std::printf("line %d: not so\n", line);
    ++failures;
  }
}
#define CHECK(condition) Check(condition, __LINE__)

std::string ValueOf(MPI_Info info, const char* key) {
  char value[32] = "";
  int size = sizeof(value);
  int flag = 0;
  CHECK(MPI_Info_get_string(info, key, &size, value, &flag) == MPI_SUCCESS);
  return flag != 0 ? value : "none";
}

void CheckSizes() {
  MPI_Info info = MPI_INFO_NULL;
  CHECK(MPI_Abi_get_info(&info) == MPI_SUCCESS);
  CHECK(ValueOf(info, "mpi_aint_size") == "8");
  CHECK(ValueOf(info, "mpi_count_size") == "8");
  CHECK(ValueOf(info, "mpi_offset_size") == "8");
  CHECK(MPI_Info_free(&info) == MPI_SUCCESS);
  CHECK(MPI_Get_hw_resource_info(&info) == MPI_SUCCESS && info != MPI_INFO_NULL);
  CHECK(MPI_Info_free(&info) == MPI_SUCCESS);
}

// A Fortran binding says its sizes once, and they must be Ferry's.
void CheckFortranSizes() {
  MPI_Info info = MPI_INFO_ENV;
  CHECK(MPI_Abi_get_fortran_info(&info) == MPI_SUCCESS && info == MPI_INFO_NULL);
  MPI_Info given = MPI_INFO_NULL;
  MPI_Info_create(&given);
  MPI_Info_set(given, "mpi_integer_size", "8");
  CHECK(MPI_Abi_set_fortran_info(given) == MPI_ERR_ABI);
  MPI_Info_set(given, "mpi_integer_size", "4");
  CHECK(MPI_Abi_set_fortran_info(MPI_INFO_NULL) == MPI_ERR_INFO);
  CHECK(MPI_Abi_set_fortran_info(given) == MPI_SUCCESS);
  CHECK(MPI_Abi_set_fortran_info(given) == MPI_ERR_ABI);
  MPI_Info_free(&given);
  CHECK(MPI_Abi_get_fortran_info(&info) == MPI_SUCCESS && info != MPI_INFO_NULL);
  CHECK(ValueOf(info, "mpi_integer_size") == "4");
  MPI_Info_free(&info);
}

void CheckTruthValues() {
  int32_t yes = -1;
  int32_t no = 0;
  int is_set = 7;
  CHECK(MPI_Abi_get_fortran_booleans(4, &yes, &no, &is_set) == MPI_SUCCESS && is_set == 0);
  CHECK(MPI_Abi_set_fortran_booleans(4, &yes, &no) == MPI_ERR_ABI);
  CHECK(MPI_Abi_set_fortran_booleans(3, &yes, &no) == MPI_ERR_ARG);
  CHECK(MPI_Abi_set_fortran_booleans(4, nullptr, &no) == MPI_ERR_ARG);
  yes = 1;
  CHECK(MPI_Abi_set_fortran_booleans(4, &yes, &no) == MPI_SUCCESS);
  CHECK(MPI_Abi_set_fortran_booleans(4, &yes, &no) == MPI_ERR_ABI);
  yes = no = 9;
  CHECK(MPI_Abi_get_fortran_booleans(4, &yes, &no, &is_set) == MPI_SUCCESS);
  CHECK(is_set == 1 && yes == 1 && no == 0);
}

void CheckNumbers() {
  CHECK(MPI_Comm_toint(MPI_COMM_SELF) == 258 && MPI_Comm_fromint(258) == MPI_COMM_SELF);
  CHECK(MPI_Type_toint(MPI_BYTE) == 583 && MPI_Type_f2c(583) == MPI_BYTE);
  CHECK(MPI_Op_toint(MPI_SUM) == 33 && MPI_Op_c2f(MPI_SUM) == 33);
  CHECK(MPI_Request_toint(MPI_REQUEST_NULL) == 384);
  CHECK(MPI_Win_fromint(MPI_Win_toint(MPI_WIN_NULL)) == MPI_WIN_NULL);
  CHECK(MPI_File_toint(MPI_FILE_NULL) == 280 && MPI_Session_toint(MPI_SESSION_NULL) == 288);
  CHECK(MPI_Message_fromint(297) == MPI_MESSAGE_NO_PROC);
  MPI_Group group = MPI_GROUP_NULL;
  MPI_Comm_group(MPI_COMM_WORLD, &group);
  const int number = MPI_Group_toint(group);
  CHECK(number >= 4096 && MPI_Group_fromint(number) == group);
  CHECK(MPI_Group_fromint(number + 100000) == nullptr);
  MPI_Group_free(&group);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  CheckSizes();
  CheckFortranSizes();
  CheckTruthValues();
  CheckNumbers();
  std::fputs(failures == 0 ? "rank 0: ok\n" : "", stdout);
  return MPI_Finalize() == MPI_SUCCESS && failures == 0 ? 0 : 1;
}
