"""Uploads the files of a chat for its code, before the request is sent."""

from openai_responses.errors import InvalidRequest, ResponsesError
from openai_responses.requests.containers import with_container_files
from openai_responses.transport.connections import Connections
from openai_responses.transport.deadlines import Deadlines
from openai_responses.transport.uploads import upload_file
from owui_chat.input.attachments import GONE_FILE
from owui_chat.wording import plural
from owui_host.files import read_file
from owui_manifold.call.uploads import UploadKey
from owui_manifold.prepare.python_files import MAX_FILE_BYTES, PythonFile
from owui_manifold.prepare.request import Prepared

_NOT_COPIED = "{} could not be copied to Python. Turn off Python for this message. {}"
_NO_FILES = (
    "This API key cannot upload files for Python, or the model's server takes none. Send "
    "the message again: Open WebUI then reads {}."
)
_NO_FILES_STATUSES = (401, 403, 404, 405, 501)
"""A key can lack the permission (scope `api.files.write`), a gateway the address."""


class ChatUploads:
    """The files of one request that its code gets; each is uploaded once a day."""

    def __init__(self, prepared: Prepared, connections: Connections) -> None:
        self._prepared = prepared
        self._connections = connections
        call = prepared.call
        self._memory = call.memory.uploads
        self._files: dict[UploadKey, PythonFile] = {}
        for file in prepared.python_files:
            key = UploadKey(
                account=call.endpoint.account(),
                user_id=call.caller.user_id,
                chat_id=call.caller.chat_id,
                file_id=file.file_id,
                path=file.stored.path,
                size=file.stored.size,
                name=file.name,
            )
            self._files[key] = file

    def status_line(self) -> str:
        """Return what is shown while files are uploaded; empty if all of them are."""
        new = [key for key in self._files if not self._memory.find(key)]
        return f"Copying {plural(len(new), 'file')} to Python" if new else ""

    async def request_with_files(self) -> Prepared:
        """Return the request with the uploaded files in its container.

        Raises InvalidRequest for a file that cannot be read or uploaded.
        """
        ids: list[str] = []
        for key, file in self._files.items():
            file_id = self._memory.find(key)
            if not file_id:
                async with self._memory.turn(key.user_id):
                    # Another answer of the chat may have uploaded it meanwhile.
                    file_id = self._memory.find(key) or await self._upload(file, key)
            if file_id:
                ids.append(file_id)
        request = with_container_files(self._prepared.request, ids)
        return self._prepared._replace(request=request)

    def forget(self) -> None:
        """Let the next request upload the files again.

        A request that failed may have named a file that is gone.
        """
        for key in self._files:
            self._memory.forget(key)

    async def _upload(self, file: PythonFile, key: UploadKey) -> str:
        """Return the id of a file that was just uploaded; empty for an empty file.

        The API refuses an empty one.
        """
        content = await read_file(file.stored, bytes, MAX_FILE_BYTES + 1)
        if content is None:
            raise InvalidRequest(GONE_FILE.format(file.name))
        if len(content) > MAX_FILE_BYTES:
            raise InvalidRequest(_NOT_COPIED.format(file.name, "It is too large."))
        if not content:
            return ""
        endpoint = self._prepared.call.endpoint
        timeouts = self._prepared.limits.timeouts
        # Its answer is a few bytes: to send them one by one does not prolong the wait.
        longest = min(timeouts.total or timeouts.first_event, timeouts.first_event)
        deadlines = Deadlines(timeouts._replace(total=longest))
        try:
            file_id = await upload_file(
                endpoint, self._connections, file.name, content, deadlines
            )
        except ResponsesError as error:
            if error.status in _NO_FILES_STATUSES:
                # From the next message on `prepare/chat.py` chooses no files.
                call = self._prepared.call
                refused = call.memory.refused_uploads
                refused.add(endpoint.account(), call.caller.user_id)
                raise InvalidRequest(_NO_FILES.format(file.name)) from None
            message = _NOT_COPIED.format(file.name, error)
            raise InvalidRequest(message, error.fault) from None
        self._memory.add(key, file_id)
        return file_id
