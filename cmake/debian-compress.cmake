# Run by CPack between installing and packing: Debian wants man pages and changelogs compressed.
# Without names and times (-n), so that the same files give the same bytes.
file(GLOB_RECURSE files ${CPACK_TEMPORARY_DIRECTORY}/stripepack.1
  ${CPACK_TEMPORARY_DIRECTORY}/changelog)
foreach(file IN LISTS files)
  execute_process(COMMAND gzip -9nf ${file} COMMAND_ERROR_IS_FATAL ANY)
endforeach()
