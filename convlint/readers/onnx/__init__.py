"""ONNX models; read in a child process, since their parser is written in C++."""
