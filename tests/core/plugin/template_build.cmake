# cmake -DTEMPLATE=… -DWORK=… -Dkiln_DIR=… …: copies the plugin template out of the tree and builds it as its reader would.
file(REMOVE_RECURSE ${WORK})
file(COPY ${TEMPLATE}/ DESTINATION ${WORK}/source)
execute_process(COMMAND ${CMAKE_COMMAND} -S ${WORK}/source -B ${WORK}/build -G ${GENERATOR} -Dkiln_DIR=${kiln_DIR}
  -DCMAKE_CXX_COMPILER=${COMPILER} -DCMAKE_BUILD_TYPE=${BUILD_TYPE}
  "-DCMAKE_CXX_FLAGS=${FLAGS}" COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${WORK}/build COMMAND_ERROR_IS_FATAL ANY)
