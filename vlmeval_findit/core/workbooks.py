"""Sheets are zip archives, which hold years from 1980 to 2107: a wrong clock must lose no table."""

from __future__ import annotations

from pathlib import Path
from typing import IO, TYPE_CHECKING, Any
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

if TYPE_CHECKING:
    from openpyxl import Workbook

_EARLIEST = (1980, 1, 1, 0, 0, 0)


class _WithoutTimes(ZipFile):
    """An archive whose members have no time of their own."""

    def writestr(
        self,
        zinfo_or_arcname: str | ZipInfo,
        data: Any,
        compress_type: int | None = None,
        compresslevel: int | None = None,
    ) -> None:
        member = zinfo_or_arcname
        if isinstance(member, str):
            member = ZipInfo(member, _EARLIEST)
            member.compress_type = self.compression
        super().writestr(member, data, compress_type, compresslevel)


def save_workbook(book: Workbook, file: Path | IO[bytes]) -> None:
    """Write a workbook of openpyxl, whatever the clock says."""
    from openpyxl.writer.excel import ExcelWriter

    archive = _WithoutTimes(file, "w", ZIP_DEFLATED, strict_timestamps=False)
    ExcelWriter(book, archive).save()
