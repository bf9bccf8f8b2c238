#!/bin/sh
echo é
