// The library says what Fortran is when it is loaded, so that MPI_Abi_get_fortran_info and
// MPI_Abi_get_fortran_booleans answer (MPI 5.0, section 20.5). These calls may precede MPI_Init,
// and this prints nothing.
#include <array>
#include <utility>

#include "mpi/fortran/binding.h"

namespace ferry::fortran {
namespace {

// The sizes of the usual compilers, and which types of a given size they have.
constexpr std::array<std::pair<const char*, const char*>, 21> kAnswers = {{
    {"mpi_logical_size", "4"},
    {"mpi_integer_size", "4"},
    {"mpi_real_size", "4"},
    {"mpi_double_precision_size", "8"},
    {"mpi_logical1_supported", "true"},
    {"mpi_logical2_supported", "true"},
    {"mpi_logical4_supported", "true"},
    {"mpi_logical8_supported", "true"},
    {"mpi_logical16_supported", "true"},
    {"mpi_integer1_supported", "true"},
    {"mpi_integer2_supported", "true"},
    {"mpi_integer4_supported", "true"},
    {"mpi_integer8_supported", "true"},
    {"mpi_integer16_supported", "true"},
    {"mpi_real2_supported", "false"},
    {"mpi_real4_supported", "true"},
    {"mpi_real8_supported", "true"},
    {"mpi_real16_supported", "true"},
    {"mpi_complex4_supported", "false"},
    {"mpi_complex32_supported", "true"},
    {"mpi_double_complex_supported", "true"},
}};

void SayWhichTypesThereAre() {
  MPI_Info info = MPI_INFO_NULL;
  if (PMPI_Abi_get_fortran_info(&info) != MPI_SUCCESS || info != MPI_INFO_NULL) {
    PMPI_Info_free(&info);  // another binding was before
    return;
  }
  PMPI_Info_create(&info);
  for (const auto& [key, value] : kAnswers) {
    PMPI_Info_set(info, key, value);
  }
  PMPI_Abi_set_fortran_info(info);
  PMPI_Info_free(&info);
}

void SayTruthValues(int bytes) {
  std::array<char, 16> yes{};
  std::array<char, 16> no{};
  int is_set = 0;
  PMPI_Abi_get_fortran_booleans(bytes, yes.data(), no.data(), &is_set);
  if (is_set == 0) {
    yes = {1};
    no = {};
    PMPI_Abi_set_fortran_booleans(bytes, yes.data(), no.data());
  }
}

__attribute__((constructor)) void SayWhatFortranIs() {
  SayWhichTypesThereAre();
  for (const int bytes : {1, 2, 4, 8, 16}) {
    SayTruthValues(bytes);
  }
}

}  // namespace
}  // namespace ferry::fortran
