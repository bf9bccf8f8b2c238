#!/bin/sh
echo run 
